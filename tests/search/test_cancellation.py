"""A cancelled sentence leaves every kind of search at the next step, without any effect on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.search.tables import EOS, Table, TableStepper, parameters

from manyheads.search.beam import beam_search
from manyheads.search.cancellation import CancellableStepper, cancelled_among
from manyheads.search.constrained import grid_beam_search
from manyheads.search.diverse import diverse_beam_search
from manyheads.search.greedy import greedy_search
from manyheads.search.interface import Hypothesis, Stepper, never_cancelled
from manyheads.search.options import Sampling
from manyheads.search.sampling import sample

LONG = 30  # tokens of every output: the tables hardly ever end
TABLES = [Table(seed, end_bias=-30.0) for seed in range(5)]
Search = Callable[[Callable[[], Stepper], int], list[list[Hypothesis]]]


def beam(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return beam_search(start(), parameters([LONG] * count, beam_size=3))


def greedy(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return [[one] for one in greedy_search(start(), parameters([LONG] * count))]


def sampled(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    rows = [[number] for number in range(count)]
    return sample(start(), rows, Sampling(), parameters([LONG] * count), draws=2)


def diverse(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return diverse_beam_search(start, parameters([LONG] * count, beam_size=4), groups=2, strength=0.5)


def required(start: Callable[[], Stepper], count: int) -> list[list[Hypothesis]]:
    return grid_beam_search(start(), [((4, 5),)] * count, parameters([LONG] * count, beam_size=2))


class Leaving:
    """A search of tables in which some sentences are cancelled after a number of steps."""

    def __init__(self, gone: Sequence[int], after: int) -> None:
        self.gone, self.after, self.steppers = gone, after, list[TableStepper]()

    def start(self) -> Stepper:
        self.steppers.append(TableStepper(TABLES))
        stepper = self.steppers[-1]

        def cancelled() -> Sequence[int]:
            return self.gone if len(stepper.row_counts) > self.after else ()

        return CancellableStepper(stepper, len(TABLES), cancelled, EOS)


SEARCHES = [beam, greedy, sampled, diverse, required]


@pytest.mark.parametrize("search", SEARCHES)
def test_the_others_come_out_to_the_bit(search: Search) -> None:
    alone = search(lambda: TableStepper(TABLES), len(TABLES))
    found = search(Leaving((1, 3), after=6).start, len(TABLES))
    assert [found[place] for place in (0, 2, 4)] == [alone[place] for place in (0, 2, 4)]


@pytest.mark.parametrize("search", SEARCHES)
def test_the_abandoned_are_computed_no_further(search: Search) -> None:
    whole, leaving = Leaving((), after=0), Leaving((1, 3), after=6)
    search(whole.start, len(TABLES))
    search(leaving.start, len(TABLES))
    for before, after in zip(whole.steppers, leaving.steppers, strict=True):
        rows = after.row_counts[8:]
        assert rows
        assert all(one * 5 <= 3 * other + 5 for one, other in zip(rows, before.row_counts[8:], strict=False))


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_that_nobody_waits_for_ends(search: Search) -> None:
    leaving = Leaving(range(len(TABLES)), after=6)
    found = search(leaving.start, len(TABLES))
    assert all(len(stepper.row_counts) == 7 for stepper in leaving.steppers)
    assert all(len(one.tokens) <= 7 for outputs in found for one in outputs)


def test_numbers_are_those_of_the_batch() -> None:
    assert list(cancelled_among(lambda: {7, 3, 5}, [2, 3, 7])()) in ([2, 1], [1, 2])
    assert cancelled_among(never_cancelled, [2, 3]) is never_cancelled
