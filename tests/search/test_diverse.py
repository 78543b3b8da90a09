"""Diverse beam search, compared with beam searches of tables from which the penalties are subtracted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import (
    EOS,
    FORBIDDEN,
    Prefix,
    ReferenceOutput,
    Table,
    TableStepper,
    assert_independent,
    parameters,
    reference_beam,
    score,
)
from tests.tolerances import approx
from torch import Tensor

from manyheads.search.beam import beam_search
from manyheads.search.diverse import diverse_beam_search
from manyheads.search.interface import Hypothesis


def diverse(tables: Sequence[Table], limits: Sequence[int], **options: float) -> list[list[Hypothesis]]:
    groups, strength = options.pop("groups", 2), options.pop("strength", 0.7)
    options_ = parameters(limits, **{"beam_size": 4, "n_best": 4} | options)
    return diverse_beam_search(lambda: TableStepper(tables), options_, groups=int(groups), strength=strength)


class PenalizedTable(Table):
    """A table with penalties on some tokens at some steps."""

    taken: list[Counter[int]]
    strength: float

    def log_probs(self, prefix: Prefix) -> Tensor:
        row = super().log_probs(prefix).clone()
        if len(prefix) < len(self.taken):
            for token, count in self.taken[len(prefix)].items():
                row[token] -= self.strength * count
        return row


class RecordingStepper(TableStepper):
    """Record the last tokens of the unfinished prefixes at each step; rows of probability 0 do not count."""

    taken: list[Counter[int]]

    def step(self, tokens: Tensor) -> Tensor:
        first = not self.row_counts
        found = super().step(tokens)
        if first:
            self.taken = []
        else:
            self.taken.append(Counter(prefix[-1] for _, _, prefix in self.rows if prefix[-1] != EOS))
        return found


def reference_diverse_search(
    table: Table, limit: int, *, groups: int, strength: float, beam_size: int, length_penalty: float
) -> list[ReferenceOutput]:
    """Search one sentence group by group (section 4 of the paper)."""
    taken: list[Counter[int]] = []
    every: dict[tuple[Prefix, bool], ReferenceOutput] = {}
    for _ in range(groups):
        penalized = PenalizedTable(table.seed, table.size, table.end_bias, impossible=table.impossible)
        object.__setattr__(penalized, "taken", taken)
        object.__setattr__(penalized, "strength", strength)
        size = beam_size // groups
        outputs, _ = reference_beam(
            penalized, beam_size=size, n_best=size, length_penalty=length_penalty, limit=limit, forbidden=FORBIDDEN
        )
        for output in outputs:
            tokens = (*output.tokens, EOS) if output.ended else output.tokens
            total = sum(table.log_probs(tokens[:index])[token].item() for index, token in enumerate(tokens))
            own = ReferenceOutput(score(total, len(tokens), length_penalty), output.tokens, output.ended)
            every.setdefault((output.tokens, output.ended), own)
        stepper = RecordingStepper([penalized])
        beam_search(stepper, parameters([limit], beam_size=size, n_best=size, length_penalty=length_penalty))
        longest = max(len(taken), len(stepper.taken))
        taken = [
            sum((counts[index] for counts in (taken, stepper.taken) if index < len(counts)), Counter())
            for index in range(longest)
        ]
    return sorted(every.values(), key=lambda output: -output.score)


@pytest.mark.parametrize("impossible", [0.0, 0.7])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("end_bias", [-4.0, -1.0, 1.0])
@pytest.mark.parametrize(("groups", "beam_size"), [(2, 4), (3, 3), (3, 6)])
def test_diverse_search_equals_the_reference_search(
    groups, beam_size, end_bias, length_penalty, impossible
) -> None:
    limits = [5, 3, 0, 6, 5]
    tables = [Table(seed, size=9, end_bias=end_bias, impossible=impossible) for seed in range(5)]
    options_ = {"groups": groups, "strength": 0.7, "beam_size": beam_size, "length_penalty": length_penalty}
    results = diverse(tables, limits, n_best=beam_size, **options_)
    for table, limit, result in zip(tables, limits, results, strict=True):
        expected = reference_diverse_search(table, limit, **options_)[:beam_size]
        assert [(output.tokens, output.ended) for output in result] == [
            (output.tokens, output.ended) for output in expected
        ]
        assert [output.score for output in result] == approx([output.score for output in expected])
        for output in result:
            assert output.token_scores == approx(table.score_tokens(output)), "scores of the model"


def test_a_higher_strength_gives_more_different_first_tokens() -> None:
    tables = [Table(seed, size=9, end_bias=-4.0) for seed in range(12)]

    def first_tokens(strength: float) -> int:
        results = diverse(tables, [5] * 12, groups=4, strength=strength)
        return sum(len({output.tokens[0] for output in result}) for result in results)

    counts = [first_tokens(strength) for strength in (0.0, 0.5, 50.0)]
    assert counts[0] == 12
    assert counts[0] < counts[1] < counts[2] == 48


def test_groups_without_strength_find_the_outputs_of_beam_search() -> None:
    tables = [Table(seed, size=9) for seed in range(5)]
    beam = beam_search(TableStepper(tables), parameters([5] * 5, beam_size=2, n_best=2))
    assert diverse(tables, [5] * 5, groups=3, beam_size=6, n_best=6, strength=0.0) == beam


@settings(deadline=None, max_examples=30)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), min_size=1, max_size=5),
    groups=st.sampled_from([2, 3]),
    impossible=st.sampled_from([0.0, 0.5]),
)
def test_an_output_does_not_depend_on_the_other_sentences(sentences, groups, impossible) -> None:
    def search(subset: Sequence[tuple[int, int]]) -> list[list[Hypothesis]]:
        tables = [Table(seed, size=9, end_bias=-1.0, impossible=impossible) for seed, _ in subset]
        options_ = {"groups": groups, "beam_size": 2 * groups, "n_best": 2 * groups}
        return diverse(tables, [limit for _, limit in subset], **options_)

    for result in assert_independent(search, sentences):
        assert len({(output.tokens, output.ended) for output in result}) == len(result)
