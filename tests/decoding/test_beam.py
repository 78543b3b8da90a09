"""Beam search compared with enumeration, a reference implementation, and itself in other batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import (
    BOS,
    EOS,
    PAD,
    UNK,
    Table,
    TableStepper,
    assert_independent,
    enumerate_outputs,
    parameters,
    reference_beam,
    to_reference,
)
from torch import Tensor

from manyheads.decoding.beam import beam_search
from manyheads.decoding.greedy import greedy_search
from manyheads.search.interface import Hypothesis

# EOS is improbable, as likely as any other token, probable, and nearly certain.
END_BIASES = [-4.0, 0.0, 2.0, 5.0]
LENGTH_PENALTIES = [0.0, 0.6, 1.0, 2.0]


def search(
    tables: Sequence[Table],
    limits: Sequence[int],
    *,
    beam_size: int,
    n_best: int = 1,
    length_penalty: float = 1.0,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    search_parameters = parameters(
        limits, beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, suppressed=forbidden
    )
    return beam_search(TableStepper(tables), *search_parameters)


@pytest.mark.parametrize("length_penalty", LENGTH_PENALTIES)
@pytest.mark.parametrize("end_bias", END_BIASES)
def test_a_beam_that_holds_everything_finds_the_best_of_all_outputs(end_bias, length_penalty) -> None:
    limit, forbidden = 3, (PAD, BOS)
    tables = [Table(seed, size=6, end_bias=end_bias) for seed in range(5)]
    results = search(
        tables, [limit] * 5, beam_size=120, n_best=4, length_penalty=length_penalty, forbidden=forbidden
    )
    for table, result in zip(tables, results, strict=True):
        every = sorted(enumerate_outputs(table, limit, length_penalty, forbidden), key=lambda output: -output.score)
        assert [output.tokens for output in result] == [output.tokens for output in every[:4]]
        assert [output.score for output in result] == pytest.approx([output.score for output in every[:4]])


@pytest.mark.parametrize("length_penalty", LENGTH_PENALTIES)
@pytest.mark.parametrize("end_bias", END_BIASES)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (2, 1), (3, 3), (5, 2)])
def test_beam_search_equals_the_reference_search_of_one_sentence(
    beam_size, n_best, end_bias, length_penalty
) -> None:
    limits = [11, 1, 4, 7, 0, 11]
    tables = [Table(seed, size=13, end_bias=end_bias) for seed in range(len(limits))]
    results = search(
        tables, limits, beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, forbidden=(PAD, BOS)
    )
    for table, limit, result in zip(tables, limits, results, strict=True):
        expected, _ = reference_beam(
            table,
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            limit=limit,
            forbidden=(PAD, BOS),
        )
        assert to_reference(result) == expected


@settings(max_examples=25)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7)), min_size=1, max_size=6),
    beam_size=st.integers(1, 5),
    length_penalty=st.sampled_from(LENGTH_PENALTIES),
    end_bias=st.sampled_from(END_BIASES),
    steps=st.sampled_from([0, 1, 4]),
    impossible=st.sampled_from([0.0, 0.4, 0.9]),
)
def test_an_output_does_not_depend_on_the_other_sentences_or_their_order(
    sentences, beam_size, length_penalty, end_bias, steps, impossible
) -> None:
    """Outputs are bit-identical, also with tied continuations and with impossible tokens."""

    def search_subset(subset: Sequence[tuple[Table, int]]) -> list[list[Hypothesis]]:
        tables, limits = zip(*subset, strict=True)
        return search(tables, limits, beam_size=beam_size, n_best=beam_size, length_penalty=length_penalty)

    cases = [
        (Table(seed, size=9, end_bias=end_bias, steps=steps, impossible=impossible, sharpness=1.0), limit)
        for seed, limit in sentences
    ]
    for (table, limit), result in zip(cases, assert_independent(search_subset, cases), strict=True):
        expected, _ = reference_beam(
            table, beam_size=beam_size, n_best=beam_size, length_penalty=length_penalty, limit=limit
        )
        assert to_reference(result) == expected


@settings(max_examples=25)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), min_size=1, max_size=5),
    length_penalty=st.sampled_from(LENGTH_PENALTIES),
    end_bias=st.sampled_from([*END_BIASES, -torch.inf]),
    steps=st.sampled_from([0, 1, 4]),
    impossible=st.sampled_from([0.0, 0.4, 0.9]),
)
def test_beam_search_of_size_1_is_greedy_search(sentences, length_penalty, end_bias, steps, impossible) -> None:
    tables = [
        Table(seed, size=9, end_bias=end_bias, steps=steps, impossible=impossible, sharpness=1.0)
        for seed, _ in sentences
    ]
    limits = [limit for _, limit in sentences]
    beam = search(tables, limits, beam_size=1, length_penalty=length_penalty, forbidden=(PAD, BOS))
    greedy = greedy_search(TableStepper(tables), *parameters(limits, length_penalty=length_penalty))
    assert [output for (output,) in beam] == greedy


@pytest.mark.parametrize("end_bias", END_BIASES)
def test_a_score_is_the_sum_of_token_scores_over_the_length_penalty(end_bias) -> None:
    tables = [Table(seed, size=13, end_bias=end_bias) for seed in range(7)]
    results = search(tables, [5] * 7, beam_size=4, n_best=4, length_penalty=0.7)
    for table, result in zip(tables, results, strict=True):
        for output in result:
            assert output.token_scores == table.score_tokens(output)
            assert len(output.token_scores) == len(output.tokens) + output.ended
            assert output.log_probability == sum(output.token_scores)
            assert output.score == pytest.approx(output.log_probability / len(output.token_scores) ** 0.7)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_suppressed_tokens_are_never_generated(beam_size) -> None:
    tables = [Table(seed, size=8, end_bias=-1.0) for seed in range(9)]
    free = search(tables, [6] * 9, beam_size=beam_size, n_best=beam_size)
    bound = search(tables, [6] * 9, beam_size=beam_size, n_best=beam_size, forbidden=(UNK, PAD, BOS))
    assert {UNK, PAD, BOS} <= {token for result in free for output in result for token in output.tokens}
    assert {token for result in bound for output in result for token in output.tokens} == {4, 5, 6, 7}
    for result in search(tables, [6] * 9, beam_size=beam_size, forbidden=(EOS,)):
        assert (len(result[0].tokens), result[0].ended) == (6, False)


def test_filler_rows_of_a_beam_are_not_fed_suppressed_tokens() -> None:
    """A model may not accept these ids: padding masks itself, and other ids may have no embedding."""

    class RecordingStepper(TableStepper):
        def step(self, tokens: Tensor) -> Tensor:
            fed_tokens.update(tokens.tolist())
            return super().step(tokens)

    fed_tokens: set[int] = set()
    beam_search(
        RecordingStepper([Table(seed, size=5, end_bias=-1.0) for seed in range(3)]),
        *parameters([4, 3, 4], beam_size=7, suppressed=(UNK, PAD)),
    )
    assert fed_tokens == {BOS, EOS, 4}


@pytest.mark.parametrize("length_penalty", LENGTH_PENALTIES)
def test_a_beam_wider_than_the_vocabulary_returns_only_what_is_possible(length_penalty) -> None:
    """Two of four tokens are suppressed: at most 2 of the others make 3 outputs that end, or a truncated one."""
    tables = [Table(seed, size=4) for seed in range(6)]
    forbidden = (PAD, BOS)
    results = search(tables, [2] * 6, beam_size=11, n_best=11, length_penalty=length_penalty, forbidden=forbidden)
    for table, result in zip(tables, results, strict=True):
        every = sorted(enumerate_outputs(table, 2, length_penalty, forbidden), key=lambda output: -output.score)
        assert to_reference(result) == every
        assert all(output.log_probability > -torch.inf for output in result)


def test_a_prefix_without_continuations_is_dropped_while_another_exists() -> None:
    class DeadEnd(Table):
        def log_probs(self, prefix: tuple[int, ...]) -> Tensor:
            row = torch.full((6,), -torch.inf)
            row[{(): [4, 5], (5,): [EOS]}.get(prefix, [])] = torch.tensor({(): [0.9, 0.1]}.get(prefix, 1.0)).log()
            return row

    ((wide,),) = search([DeadEnd(0)], [4], beam_size=2)
    ((narrow,),) = search([DeadEnd(0)], [4], beam_size=1)
    assert (wide.tokens, wide.ended) == ((5,), True)
    assert (narrow.tokens, narrow.ended) == ((4,), False)


def test_the_prefix_is_returned_if_no_token_is_possible() -> None:
    ((output,),) = search([Table(0, size=4)], [3], beam_size=3, forbidden=(0, 1, 2, 3))
    assert output == Hypothesis((), 0.0, 0.0, (), ended=False)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_beam_search_takes_as_many_steps_as_the_reference_search(length_penalty) -> None:
    taken = set()
    for end_bias, n_best, seed in itertools.product(END_BIASES, (1, 3), range(8)):
        table = Table(seed, size=9, end_bias=end_bias)
        stepper = TableStepper([table])
        search_parameters = parameters(
            [9], beam_size=3, n_best=n_best, length_penalty=length_penalty, suppressed=()
        )
        beam_search(stepper, *search_parameters)
        _, steps = reference_beam(table, beam_size=3, n_best=n_best, length_penalty=length_penalty, limit=9)
        assert len(stepper.row_counts) == steps
        taken.add(steps)
    assert len(taken) > 6  # they stop at many different steps


def test_finished_sentences_are_removed_from_the_batch() -> None:
    tables = [Table(seed, end_bias=-torch.inf) for seed in range(3)]
    stepper = TableStepper(tables)
    beam_search(stepper, *parameters([1, 5, 3], beam_size=4, suppressed=()))
    # a step for each token, and one to check whether the output ends there
    assert stepper.row_counts == [3, 12, 8, 8, 4, 4]


def test_ties_are_broken_by_the_lower_id() -> None:
    class UniformTable(Table):
        def log_probs(self, prefix: tuple[int, ...]) -> Tensor:
            return torch.zeros(self.size).log_softmax(0)

    for size in (9, 3000):  # the wide vocabulary is searched in chunks
        (result,) = search([UniformTable(0, size)], [1], beam_size=4, n_best=4, forbidden=(EOS,))
        assert [output.tokens for output in result] == [(0,), (1,), (2,), (4,)]


def test_no_sentences_give_no_outputs() -> None:
    assert search([], [], beam_size=3) == []
