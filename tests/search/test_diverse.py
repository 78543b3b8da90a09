"""Diverse beam search against beam searches of tables with the penalties subtracted by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import (
    EOS,
    FORBIDDEN,
    Found,
    Prefix,
    Table,
    TableStepper,
    assert_independent,
    parameters,
    score,
    slow_beam,
)
from torch import Tensor

from manyheads.search.beam import beam_search
from manyheads.search.diverse import diverse_beam_search
from manyheads.search.interface import Hypothesis


def diverse(tables: Sequence[Table], limits: Sequence[int], **options: float) -> list[list[Hypothesis]]:
    groups, strength = options.pop("groups", 2), options.pop("strength", 0.7)
    asked = parameters(limits, **{"beam_size": 4, "n_best": 4} | options)
    return diverse_beam_search(lambda: TableStepper(tables), asked, groups=int(groups), strength=strength)


class Lowered(Table):
    """A table with penalties on some tokens at some steps."""

    taken: list[Counter[int]]
    strength: float

    def log_probs(self, prefix: Prefix) -> Tensor:
        row = super().log_probs(prefix).clone()
        if len(prefix) < len(self.taken):
            for token, count in self.taken[len(prefix)].items():
                row[token] -= self.strength * count
        return row


class Watched(TableStepper):
    """Records the tokens of the open prefixes at each step; a row of probability 0 does not count."""

    taken: list[Counter[int]]

    def step(self, tokens: Tensor) -> Tensor:
        first = not self.row_counts
        found = super().step(tokens)
        if first:
            self.taken = []
        else:
            self.taken.append(Counter(prefix[-1] for _, _, prefix in self.rows if prefix[-1] != EOS))
        return found


def one_group_after_the_other(
    table: Table, limit: int, *, groups: int, strength: float, beam_size: int, length_penalty: float
) -> list[Found]:
    """Section 4 of the paper for one sentence, group by group."""
    taken: list[Counter[int]] = []
    every: dict[tuple[Prefix, bool], Found] = {}
    for _ in range(groups):
        lowered = Lowered(table.seed, table.size, table.end_bias, impossible=table.impossible)
        object.__setattr__(lowered, "taken", taken)
        object.__setattr__(lowered, "strength", strength)
        size = beam_size // groups
        outputs, _ = slow_beam(
            lowered, beam_size=size, n_best=size, length_penalty=length_penalty, limit=limit, forbidden=FORBIDDEN
        )
        for output in outputs:
            tokens = (*output.tokens, EOS) if output.ended else output.tokens
            total = sum(table.log_probs(tokens[:place])[token].item() for place, token in enumerate(tokens))
            own = Found(score(total, len(tokens), length_penalty), output.tokens, output.ended)
            every.setdefault((output.tokens, output.ended), own)
        stepper = Watched([lowered])
        beam_search(stepper, parameters([limit], beam_size=size, n_best=size, length_penalty=length_penalty))
        longest = max(len(taken), len(stepper.taken))
        taken = [
            sum((counts[place] for counts in (taken, stepper.taken) if place < len(counts)), Counter())
            for place in range(longest)
        ]
    return sorted(every.values(), key=lambda one: -one.score)


@pytest.mark.parametrize("impossible", [0.0, 0.7])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("end_bias", [-4.0, -1.0, 1.0])
@pytest.mark.parametrize(("groups", "beam_size"), [(2, 4), (3, 3), (3, 6)])
def test_groups_find_what_slow_groups_find(groups, beam_size, end_bias, length_penalty, impossible) -> None:
    limits = [5, 3, 0, 6, 5]
    tables = [Table(seed, size=9, end_bias=end_bias, impossible=impossible) for seed in range(5)]
    asked = {"groups": groups, "strength": 0.7, "beam_size": beam_size, "length_penalty": length_penalty}
    results = diverse(tables, limits, n_best=beam_size, **asked)
    for table, limit, result in zip(tables, limits, results, strict=True):
        expected = one_group_after_the_other(table, limit, **asked)[:beam_size]
        assert [(one.tokens, one.ended) for one in result] == [(one.tokens, one.ended) for one in expected]
        assert [one.score for one in result] == pytest.approx([one.score for one in expected], abs=1e-5)
        for one in result:
            assert one.token_scores == pytest.approx(table.score_tokens(one), abs=1e-5), "scores of the model"


def test_strength_leads_the_groups_apart() -> None:
    tables = [Table(seed, size=9, end_bias=-4.0) for seed in range(12)]

    def first_tokens(strength: float) -> int:
        results = diverse(tables, [5] * 12, groups=4, strength=strength)
        return sum(len({one.tokens[0] for one in result}) for result in results)

    counts = [first_tokens(strength) for strength in (0.0, 0.5, 50.0)]
    assert counts[0] == 12
    assert counts[0] < counts[1] < counts[2] == 48


def test_without_strength_all_groups_find_what_a_beam_finds() -> None:
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
    def search(some: Sequence[tuple[int, int]]) -> list[list[Hypothesis]]:
        tables = [Table(seed, size=9, end_bias=-1.0, impossible=impossible) for seed, _ in some]
        asked = {"groups": groups, "beam_size": 2 * groups, "n_best": 2 * groups}
        return diverse(tables, [limit for _, limit in some], **asked)

    for result in assert_independent(search, sentences):
        assert len({(one.tokens, one.ended) for one in result}) == len(result)
