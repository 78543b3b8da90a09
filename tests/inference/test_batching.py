"""Batches of rows: every row is searched once, with its own options, and outputs are in the order of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.errors import UsageError
from manyheads.inference.batching import _make_batches, check_options, finish, search_in_batches
from manyheads.search.interface import Hypothesis, make_hypothesis, never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions

OPTIONS = SearchOptions(
    beam_size=2, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=3, batch_tokens=40, n_best=2
)
ROWS = [[5] * length for length in (3, 9, 1, 7, 2, 2, 30, 4)]


def output(length: int) -> Hypothesis:
    return make_hypothesis([length], [-1.0], ended=False, length_penalty=1.0)


@pytest.mark.parametrize("workers", [1, 3])
def test_outputs_are_in_the_order_of_the_rows_and_limited_to_n_best(workers) -> None:
    def search(rows, options, constraints, cancelled) -> list[list[Hypothesis]]:
        return [[output(len(row))] * 3 for row in rows]

    found = search_in_batches(ROWS, OPTIONS, (), never_cancelled, workers=workers, search=search)
    assert [[hypothesis.tokens for hypothesis in outputs] for outputs in found] == [
        [(len(row),)] * 2 for row in ROWS
    ]


def test_a_batch_has_the_constraints_and_the_cancelled_rows_of_its_own_rows() -> None:
    numbered = [Constraints((number,)) for number in range(len(ROWS))]
    seen = {}

    def search(rows, options, constraints, cancelled) -> list[list[Hypothesis]]:
        seen.update(zip((constraint.prefix[0] for constraint in constraints), map(len, rows), strict=True))
        stopped.update(constraints[index].prefix[0] for index in cancelled())
        return [[] for _ in rows]

    stopped = set[int]()
    search_in_batches(ROWS, OPTIONS, numbered, lambda: [1, 6], workers=1, search=search)
    assert seen == {number: len(row) for number, row in enumerate(ROWS)}
    assert stopped == {1, 6}


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_respect_the_token_budget_and_rows_with_required_words_are_separate(workers: int) -> None:
    required = [Constraints(required=((5, 6),) if number in (0, 3) else ()) for number in range(len(ROWS))]
    batches = list(_make_batches(ROWS, OPTIONS, required, workers))
    assert sorted(index for batch in batches for index in batch) == list(range(len(ROWS)))
    for batch in batches:
        assert len({index in (0, 3) for index in batch}) == 1
    for first in range(len(batches) - workers + 1):  # searched at the same time
        together = [len(ROWS[index]) + 1 for batch in batches[first : first + workers] for index in batch]
        assert len(together) <= workers or 2 * sum(together) <= 40 + 2 * max(together)


def test_workers_get_rows_of_the_same_lengths_but_few_rows_stay_together() -> None:
    options = replace(OPTIONS, batch_tokens=100_000)
    rows = [[5] * length for length in range(1, 65)]
    halves = _make_batches(rows, options, [Constraints()] * 64, 2)
    assert [sum(len(rows[index]) for index in half) for half in halves] == [1_056, 1_024]
    assert [len(batch) for batch in _make_batches(rows[:20], options, [Constraints()] * 20, 2)] == [20]


def test_options_that_a_model_does_not_support_are_refused() -> None:
    check_options(replace(OPTIONS, attention_layer=-2), [], 2, 9)
    sampled = replace(OPTIONS, sampling=Sampling(), n_best=9)
    check_options(sampled, [], 2, 9)
    for options, constraints, message in (
        (
            replace(OPTIONS, attention_layer=2),
            (),
            "attention layer 2 does not exist: the decoder has 2, numbered 0 to 1",
        ),
        (replace(OPTIONS, n_best=3), (), "n_best = 3 must not be above beam_size = 2"),
        (sampled, Constraints(required=((5,),)), "not by sampling"),
        (OPTIONS, Constraints((5,) * 10), "a prefix sequence has 10 tokens.*is 9"),
        (OPTIONS, Constraints(required=((5,) * 10,)), "a required sequence has 10 tokens.*is 9"),
    ):
        with pytest.raises(UsageError, match=message):
            check_options(options, [constraints] if constraints else [], 2, 9)


def test_a_search_is_stepped_until_its_last_row_has_finished() -> None:
    class Countdown:
        """Row number n finishes at step n + 1."""

        full = False

        def __init__(self) -> None:
            self.batches: list[int] = []
            self.steps = 0

        def add(self, rows, cancelled, on_finished, constraints) -> None:
            self.batches, self.on_finished = list(range(len(rows))), on_finished

        def step(self) -> None:
            self.on_finished(self.steps, [output(self.steps)])
            self.steps += 1
            self.batches = self.batches[1:]

    search = Countdown()
    assert [outputs[0].tokens for outputs in finish(search, ROWS, never_cancelled)] == [
        (n,) for n in range(len(ROWS))
    ]
    assert search.steps == len(ROWS)
