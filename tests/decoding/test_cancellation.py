"""A cancelled sentence is removed from every search at its next step, without any effect on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.search.tables import EOS, Table, TableStepper, parameters

from manyheads.decoding.beam import beam_search
from manyheads.decoding.cancellation import CancellableStepper
from manyheads.decoding.constrained import grid_beam_search
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.sampling import sample
from manyheads.search.interface import Hypothesis, Stepper
from manyheads.search.options import Constraints, Sampling

LONG = 30  # tokens of every output: the tables hardly ever end
TABLES = [Table(seed, end_bias=-30.0) for seed in range(5)]
Search = Callable[[Callable[[], Stepper], int], list[list[Hypothesis]]]


def beam(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return beam_search(start(), *parameters([LONG] * count, beam_size=3))


def greedy(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return [[output] for output in greedy_search(start(), *parameters([LONG] * count))]


def sampled(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    rows = [[number] for number in range(count)]
    return sample(start(), rows, *parameters([LONG] * count, n_best=2, sampling=Sampling()))


def constrained(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return grid_beam_search(
        start(), [Constraints(required=((4, 5),))] * count, *parameters([LONG] * count, beam_size=2)
    )


class CancelledSearch:
    """Start steppers of tables in which some sentences are cancelled after a number of steps."""

    def __init__(self, cancelled: Sequence[int], after: int) -> None:
        self.cancelled, self.after, self.steppers = cancelled, after, list[TableStepper]()

    def start(self) -> Stepper:
        self.steppers.append(TableStepper(TABLES))
        stepper = self.steppers[-1]

        def cancelled() -> Sequence[int]:
            return self.cancelled if len(stepper.row_counts) > self.after else ()

        return CancellableStepper(stepper, len(TABLES), cancelled, EOS)


SEARCHES = [beam, greedy, sampled, constrained]


@pytest.mark.parametrize("search", SEARCHES)
def test_outputs_of_other_sentences_are_bit_identical_after_a_cancellation(search: Search) -> None:
    complete = search(lambda: TableStepper(TABLES), len(TABLES))
    found = search(CancelledSearch((1, 3), after=6).start, len(TABLES))
    assert [found[index] for index in (0, 2, 4)] == [complete[index] for index in (0, 2, 4)]


@pytest.mark.parametrize("search", SEARCHES)
def test_cancelled_sentences_are_not_computed_any_further(search: Search) -> None:
    whole, cancelled = CancelledSearch((), after=0), CancelledSearch((1, 3), after=6)
    search(whole.start, len(TABLES))
    search(cancelled.start, len(TABLES))
    for before, after in zip(whole.steppers, cancelled.steppers, strict=True):
        rows = after.row_counts[8:]
        assert rows
        assert all(count * 5 <= 3 * other + 5 for count, other in zip(rows, before.row_counts[8:], strict=False))


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_whose_sentences_are_all_cancelled_ends(search: Search) -> None:
    cancelled = CancelledSearch(range(len(TABLES)), after=6)
    found = search(cancelled.start, len(TABLES))
    assert all(len(stepper.row_counts) == 7 for stepper in cancelled.steppers)
    assert all(len(output.tokens) <= 7 for outputs in found for output in outputs)
