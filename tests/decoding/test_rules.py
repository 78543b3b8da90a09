"""Rules around a stepper, compared with tables in which the forbidden tokens are impossible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import (
    BOS,
    EOS,
    FORBIDDEN,
    Prefix,
    RestrictedTable,
    Table,
    TableStepper,
    assert_independent,
    enumerate_outputs,
    parameters,
    reference_beam,
    to_reference,
)

from manyheads.decoding.beam import beam_search
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.rules import ForbiddenSequences, MinLength, NoRepeat, Rule, RuledStepper
from manyheads.decoding.sampling import sample
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Sampling

SIZE = 8
Banned = Callable[[Prefix, int], bool]


def stepper(tables: Sequence[Table], rules: Sequence[Rule], prefixes: Sequence[Prefix] = ()) -> RuledStepper:
    return RuledStepper(TableStepper(tables), len(tables), rules=rules, prefixes=prefixes)


def beam(ruled: RuledStepper, limits: Sequence[int], *, beam_size: int, n_best: int) -> list[list[Hypothesis]]:
    return beam_search(ruled, *parameters(limits, beam_size=beam_size, n_best=n_best))


def shorter_than(length: int) -> Banned:
    return lambda prefix, token: token == EOS and len(prefix) < length


def repeats(n: int) -> Banned:
    def banned(prefix: Prefix, token: int) -> bool:
        tokens = (*prefix, token)
        grams = [tokens[start : start + n] for start in range(len(tokens) - n + 1)]
        return len(grams) > 0 and grams[-1] in grams[:-1]

    return banned


def completes(sequences: Sequence[Prefix]) -> Banned:
    def banned(prefix: Prefix, token: int) -> bool:
        text = "".join(chr(65 + each) for each in (*prefix, token))
        return any(text.endswith("".join(chr(65 + each) for each in sequence)) for sequence in sequences)

    return banned


def violates_prefix(start: Prefix, rest: Banned) -> Banned:
    """Return whether a token violates a forced prefix, or a rule after the prefix."""

    def banned(prefix: Prefix, token: int) -> bool:
        if len(prefix) < len(start):
            return token != start[len(prefix)]
        return rest(prefix, token)

    return banned


SEQUENCES = [[(4,), (5, 6)], [], [(6, 6, 7), (7, 4)], [(0, 5)]]
PREFIXES: list[Prefix] = [(4, 5), (), (7, 7, 7), (6,)]
CASES = [
    pytest.param([MinLength([3, 0, 4, 2], EOS)], [shorter_than(n) for n in (3, 0, 4, 2)], id="min length"),
    *(pytest.param([NoRepeat(n)], [repeats(n)] * 4, id=f"no repeat {n}") for n in (1, 2, 3)),
    pytest.param([ForbiddenSequences(SEQUENCES)], [completes(sequences) for sequences in SEQUENCES], id="without"),
]


@pytest.mark.parametrize("prefixes", [[], PREFIXES])
@pytest.mark.parametrize("beam_size", [1, 3, 200])
@pytest.mark.parametrize(("rules", "banned"), CASES)
def test_a_rule_equals_a_table_in_which_its_forbidden_tokens_are_impossible(
    rules, banned, beam_size, prefixes
) -> None:
    limits = [5, 4, 6, 3] if beam_size < 200 else [3, 3, 4, 3]
    if prefixes:
        banned = [violates_prefix(prefix, rule) for prefix, rule in zip(prefixes, banned, strict=True)]
    for end_bias in (-2.0, 2.0):
        tables = [Table(seed, size=SIZE, end_bias=end_bias) for seed in range(4)]
        restricted = [
            RestrictedTable(seed, size=SIZE, end_bias=end_bias, banned=rule) for seed, rule in enumerate(banned)
        ]
        n_best = min(beam_size, 4)
        results = beam(stepper(tables, rules, prefixes), limits, beam_size=beam_size, n_best=n_best)
        for table, limit, result in zip(restricted, limits, results, strict=True):
            expected, _ = reference_beam(
                table, beam_size=beam_size, n_best=n_best, length_penalty=1.0, limit=limit, forbidden=FORBIDDEN
            )
            assert to_reference(result) == expected
            if beam_size == 200 and limit == 3:
                every = sorted(enumerate_outputs(table, limit, 1.0, FORBIDDEN), key=lambda output: -output.score)
                assert to_reference(result)[0] == every[0]


@settings(max_examples=25)
@given(
    sentences=st.lists(
        st.tuples(
            st.integers(0, 30),  # table
            st.integers(0, 6),  # limit
            st.lists(st.integers(4, SIZE - 1), max_size=3).map(tuple),  # prefix
            st.lists(st.lists(st.integers(4, SIZE - 1), min_size=1, max_size=2).map(tuple), max_size=3),
            st.integers(0, 4),  # shortest
        ),
        min_size=1,
        max_size=5,
    ),
    n=st.integers(1, 3),
    beam_size=st.integers(1, 4),
    impossible=st.sampled_from([0.0, 0.5]),
)
def test_combined_rules_hold_for_each_sentence_in_any_batch(sentences, n, beam_size, impossible) -> None:
    def search(subset: Sequence) -> list[list[Hypothesis]]:
        tables = [Table(seed, size=SIZE, end_bias=-1.0, impossible=impossible) for seed, *_ in subset]
        rules = [
            MinLength([sentence[4] for sentence in subset], EOS),
            NoRepeat(n),
            ForbiddenSequences([sentence[3] for sentence in subset]),
        ]
        ruled = stepper(tables, rules, [sentence[2] for sentence in subset])
        limits = [max(sentence[1], len(sentence[2])) for sentence in subset]
        return beam(ruled, limits, beam_size=beam_size, n_best=beam_size)

    for sentence, result in zip(sentences, assert_independent(search, sentences), strict=True):
        seed, _, prefix, sequences, shortest = sentence
        table = Table(seed, size=SIZE, end_bias=-1.0, impossible=impossible)
        rules = (shorter_than(shortest), repeats(n), completes(sequences))
        banned = violates_prefix(
            prefix, lambda before, token, rules=rules: any(rule(before, token) for rule in rules)
        )
        for output in result:
            tokens = (*output.tokens, EOS) if output.ended else output.tokens
            assert output.tokens[: len(prefix)] == prefix[: len(output.tokens)]
            assert not any(banned(tokens[:index], token) for index, token in enumerate(tokens))
            assert output.token_scores == table.score_tokens(output), "scores stay those of the model"


@pytest.mark.parametrize("draws", [1, 3])
def test_greedy_search_and_sampling_obey_the_same_rules(draws) -> None:
    tables = [Table(seed, size=SIZE, end_bias=-1.0) for seed in range(4)]
    rules = [NoRepeat(1), MinLength([2] * 4, EOS), ForbiddenSequences(SEQUENCES)]
    greedy = greedy_search(stepper(tables, rules, PREFIXES), *parameters([6] * 4))
    drawn = sample(
        stepper(tables, rules, PREFIXES),
        [(0,), (1,), (2,), (3,)],
        *parameters([6] * 4, n_best=draws, sampling=Sampling()),
    )
    for index, prefix in enumerate(PREFIXES):
        for output in (greedy[index], *drawn[index]):
            assert output.tokens[: len(prefix)] == prefix
            free = output.tokens[len(prefix) :]
            assert len(set(free)) == len(free)
            assert not set(free) & set(prefix)
            assert len(output.tokens) >= 2 or not output.ended
            assert not any(
                completes(SEQUENCES[index])(output.tokens[:end], output.tokens[end])
                for end in range(len(prefix), len(output.tokens))
            )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_row_in_which_every_token_is_forbidden_ends_truncated(beam_size) -> None:
    rules = [ForbiddenSequences([[(token,) for token in range(4, SIZE)] + [(0,), (EOS,)], []])]
    tables = [Table(1, size=SIZE), Table(2, size=SIZE)]
    stuck, other = beam(stepper(tables, rules), [4, 4], beam_size=beam_size, n_best=1)
    assert stuck == [Hypothesis((), 0.0, 0.0, (), ended=False)]
    assert (
        to_reference(other)
        == reference_beam(
            tables[1], beam_size=beam_size, n_best=1, length_penalty=1.0, limit=4, forbidden=FORBIDDEN
        )[0]
    )


def test_rules_do_not_modify_the_log_probabilities_of_the_model() -> None:
    """A stepper may return a tensor that it uses again."""
    table = Table(3, size=SIZE)
    before = table.log_probs(()).clone()

    class CachingStepper(TableStepper):
        def step(self, tokens: torch.Tensor) -> torch.Tensor:
            super().step(tokens)
            return table.log_probs(())[None]

    ruled = RuledStepper(CachingStepper([table]), 1, rules=[MinLength([5], EOS)], prefixes=[(4,)])
    ruled.step(torch.tensor([BOS]))
    assert torch.equal(table.log_probs(()), before)
