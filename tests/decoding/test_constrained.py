"""Constrained decoding: every output holds the required sequences, and a wide beam finds the best outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import (
    FORBIDDEN,
    Prefix,
    Table,
    TableStepper,
    assert_independent,
    enumerate_outputs,
    parameters,
    reference_beam,
    to_reference,
)

from manyheads.decoding.constrained import grid_beam_search
from manyheads.decoding.rules import ForbiddenSequences, NoRepeat, RuledStepper
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Constraints, WordTokens


def search(
    tables: Sequence[Table], required: Sequence[Sequence[Prefix]], limits: Sequence[int], **options: float
) -> list[list[Hypothesis]]:
    constraints = [Constraints(required=tuple(sequences)) for sequences in required]
    return grid_beam_search(TableStepper(tables), constraints, *parameters(limits, **{"beam_size": 3} | options))


def holds(tokens: Prefix, sequence: Prefix) -> bool:
    return any(tokens[start : start + len(sequence)] == sequence for start in range(len(tokens)))


@pytest.mark.parametrize("required", [[(4,)], [(5, 4)], [(4,), (5,)], [(4, 4, 5)], [(5, 4), (4, 5)]], ids=str)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("end_bias", [-3.0, 0.0, 3.0])
def test_a_beam_that_holds_everything_finds_the_best_outputs_with_the_required_sequences(
    required, end_bias, length_penalty
) -> None:
    limit = max(3, sum(map(len, required)) + 1)
    tables = [Table(seed, size=6, end_bias=end_bias) for seed in range(3)]
    results = search(tables, [required] * 3, [limit] * 3, beam_size=700, n_best=5, length_penalty=length_penalty)
    for table, result in zip(tables, results, strict=True):
        every = [
            output
            for output in enumerate_outputs(table, limit, length_penalty, FORBIDDEN)
            if all(holds(output.tokens, sequence) for sequence in required)
        ]
        best = sorted(every, key=lambda output: -output.score)[:5]
        assert [output.tokens for output in result] == [output.tokens for output in best]
        assert [output.score for output in result] == pytest.approx([output.score for output in best])


# Tokens 4 and 5 are letters, 6 is a blank and a letter, and 7 ends a sentence.
WORDS = WordTokens(*(np.isin(range(8), tokens) for tokens in ([4, 5, 6], [4, 5], [4, 5, 6], [7])))


def is_boundary(tokens: Prefix, place: int) -> bool:
    within = 0 < place < len(tokens)
    return not (within and WORDS.ends_open[tokens[place - 1]] and WORDS.goes_on[tokens[place]])


def holds_between_boundaries(tokens: Prefix, sequence: Prefix) -> bool:
    return any(
        tokens[start : start + len(sequence)] == sequence
        and is_boundary(tokens, start)
        and is_boundary(tokens, start + len(sequence))
        for start in range(len(tokens))
    )


def ends_with_sentence(tokens: Prefix, sentences: int) -> bool:
    ends = [place for place, token in enumerate(tokens) if token == 7]
    return len(ends) < sentences or not WORDS.has_letters[list(tokens[ends[sentences - 1] :])].any()


WORD_TABLES = [Table(seed, size=8, end_bias=-1.0) for seed in range(2)]  # they keep what they drew


@pytest.mark.parametrize("required", [((6,),), ((4,),), ((6, 5),), ((4,), (5,))], ids=str)
@pytest.mark.parametrize("sentences", [0, 1, 2])
@pytest.mark.parametrize("beam_size", [2, 700])
def test_a_required_sequence_breaks_no_word_and_no_word_follows_the_last_sentence(
    required: tuple[Prefix, ...], sentences: int, beam_size: int
) -> None:
    limit, count = 4, len(WORD_TABLES)
    constraints = [Constraints(required=required, words=WORDS, sentences=sentences)] * count
    results = grid_beam_search(
        TableStepper(WORD_TABLES), constraints, *parameters([limit] * count, beam_size=beam_size, n_best=2)
    )
    for table, result in zip(WORD_TABLES, results, strict=True):
        allowed = {
            output.tokens: output.score
            for output in enumerate_outputs(table, limit, 1.0, FORBIDDEN)
            if all(holds_between_boundaries(output.tokens, sequence) for sequence in required)
            and (not sentences or ends_with_sentence(output.tokens, sentences))
        }
        assert {output.tokens for output in result} <= allowed.keys()
        if beam_size == 700:
            best = sorted(allowed.values(), reverse=True)[:2]
            assert [output.score for output in result] == pytest.approx(best)


@settings(max_examples=25)
@given(
    sentences=st.lists(
        st.tuples(
            st.integers(0, 50),
            st.lists(st.lists(st.integers(4, 8), min_size=1, max_size=3).map(tuple), max_size=3),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=4,
    ),
    beam_size=st.integers(1, 4),
    end_bias=st.sampled_from([-4.0, 0.0, 4.0]),
)
def test_every_output_holds_its_required_sequences_in_any_batch(sentences, beam_size, end_bias) -> None:
    def search_subset(subset: Sequence[tuple[Table, list[Prefix], int]]) -> list[list[Hypothesis]]:
        tables, required, limits = zip(*subset, strict=True)
        return search(tables, required, limits, beam_size=beam_size, n_best=beam_size)

    cases = [
        (Table(seed, size=9, end_bias=end_bias), sequences, sum(map(len, sequences)) + slack)
        for seed, sequences, slack in sentences
    ]
    for (table, sequences, limit), result in zip(cases, assert_independent(search_subset, cases), strict=True):
        assert 1 <= len(result) <= beam_size
        for output in result:
            assert all(holds(output.tokens, sequence) for sequence in sequences)
            assert len(output.tokens) <= limit
            assert output.token_scores == table.score_tokens(output)
            assert output.score == pytest.approx(output.log_probability / max(1, len(output.token_scores)))


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_constrained_search_without_required_sequences_is_beam_search(beam_size) -> None:
    limits = [6, 0, 3, 9]
    tables = [Table(seed, size=9, end_bias=-1.0) for seed in range(4)]
    results = search(tables, [[]] * 4, limits, beam_size=beam_size, n_best=beam_size)
    for table, limit, result in zip(tables, limits, results, strict=True):
        expected, _ = reference_beam(
            table, beam_size=beam_size, n_best=beam_size, length_penalty=1.0, limit=limit, forbidden=FORBIDDEN
        )
        assert to_reference(result) == expected


def test_required_sequences_are_placed_where_they_are_likely_not_only_at_the_end() -> None:
    tables = [Table(seed, size=9, end_bias=-1.0) for seed in range(20)]
    results = search(tables, [[(7, 5)]] * 20, [8] * 20, beam_size=4)
    positions = {result[0].tokens.index(7) for result in results}
    assert len(positions) > 2
    at_the_end = [result[0].tokens[-2:] == (7, 5) for result in results]
    assert not all(at_the_end)


def test_constrained_search_obeys_forced_prefixes_and_rules() -> None:
    tables = [Table(seed, size=9, end_bias=-1.0) for seed in range(6)]
    ruled = RuledStepper(TableStepper(tables), 6, rules=[NoRepeat(1)], prefixes=[(6, 4)] * 6)
    for (output,) in grid_beam_search(
        ruled,
        [Constraints(required=((7,), (8, 5)))] * 6,
        *parameters([6] * 6, beam_size=3),
    ):
        assert output.tokens[:2] == (6, 4)
        assert 7 in output.tokens
        assert holds(output.tokens, (8, 5))
        assert len(set(output.tokens)) == len(output.tokens)


def test_a_sequence_that_is_required_and_forbidden_is_left_out_and_the_output_is_truncated() -> None:
    ruled = RuledStepper(TableStepper([Table(1, size=9)]), 1, rules=[ForbiddenSequences([[(5,)]])])
    ((output,),) = grid_beam_search(
        ruled,
        [Constraints(required=((4, 5),))],
        *parameters([5], beam_size=2, suppressed=()),
    )
    assert not output.ended
    assert 5 not in output.tokens
