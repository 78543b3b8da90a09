"""Batches of rows: every row is searched once, with its own options, and outputs are in the order of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.decoding.batching import Job, _make_batches, check_options, finish, search_in_batches
from manyheads.errors import UsageError
from manyheads.search.interface import Hypothesis, make_hypothesis, never_cancelled
from manyheads.search.options import SearchOptions

OPTIONS = SearchOptions(
    beam_size=2, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=3, batch_tokens=40, n_best=2
)
ROWS = [[5] * length for length in (3, 9, 1, 7, 2, 2, 30, 4)]


def output(length: int) -> Hypothesis:
    return make_hypothesis([length], [-1.0], ended=False, length_penalty=1.0)


@pytest.mark.parametrize("workers", [1, 3])
def test_outputs_are_in_the_order_of_the_rows_and_limited_to_n_best(workers) -> None:
    def search(job: Job) -> list[list[Hypothesis]]:
        return [[output(len(row))] * 3 for row in job.rows]

    found = search_in_batches(ROWS, OPTIONS, never_cancelled, workers=workers, search=search)
    assert [[one.tokens for one in outputs] for outputs in found] == [[(len(row),)] * 2 for row in ROWS]


def test_a_batch_has_the_constraints_and_the_cancelled_rows_of_its_own_rows() -> None:
    options = replace(OPTIONS, prefixes=tuple((number,) for number in range(len(ROWS))))
    seen = {}

    def search(job: Job) -> list[list[Hypothesis]]:
        seen.update(zip((prefix[0] for prefix in job.options.prefixes), map(len, job.rows), strict=True))
        cancelled.update(job.options.prefixes[index][0] for index in job.cancelled())
        return [[] for _ in job.rows]

    cancelled = set[int]()
    search_in_batches(ROWS, options, lambda: [1, 6], workers=1, search=search)
    assert seen == {number: len(row) for number, row in enumerate(ROWS)}
    assert cancelled == {1, 6}


def test_a_batch_respects_the_token_budget_and_rows_with_required_words_are_separate() -> None:
    required = tuple(((5, 6),) if number in (0, 3) else () for number in range(len(ROWS)))
    batches = list(_make_batches(ROWS, replace(OPTIONS, required=required), 1))
    assert sorted(index for batch in batches for index in batch) == list(range(len(ROWS)))
    for batch in batches:
        assert len({index in (0, 3) for index in batch}) == 1
        assert len(batch) == 1 or 2 * len(batch) * (max(len(ROWS[index]) for index in batch) + 1) <= 40


def test_options_that_a_model_does_not_support_are_refused() -> None:
    check_options(replace(OPTIONS, attention_layer=-2), 2, 9)
    with pytest.raises(UsageError, match="attention layer 2 does not exist: the decoder has 2, numbered 0 to 1"):
        check_options(replace(OPTIONS, attention_layer=2), 2, 9)
    for name, changes in (("prefix", {"prefixes": ((5,) * 10,)}), ("required", {"required": (((5,) * 10,),)})):
        with pytest.raises(UsageError, match=f"a {name} sequence has 10 tokens.*is 9"):
            check_options(replace(OPTIONS, **changes), 2, 9)


def test_a_search_is_stepped_until_its_last_row_has_finished() -> None:
    class Countdown:
        """Row number n finishes at step n + 1."""

        full = False

        def __init__(self) -> None:
            self.batches: list[int] = []
            self.steps = 0

        def add(self, rows, cancelled, on_finished) -> None:
            self.batches, self.on_finished = list(range(len(rows))), on_finished

        def step(self) -> None:
            self.on_finished(self.steps, [output(self.steps)])
            self.steps += 1
            self.batches = self.batches[1:]

    search = Countdown()
    assert [outputs[0].tokens for outputs in finish(search, Job(ROWS, OPTIONS))] == [(n,) for n in range(len(ROWS))]
    assert search.steps == len(ROWS)
