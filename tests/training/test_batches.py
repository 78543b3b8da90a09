"""Results prefetched by a thread equal those computed one by one."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from manyheads.training.batches import _AHEAD, _prefetch


def test_prefetched_results_are_in_order() -> None:
    def slow(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number**2

    assert list(_prefetch(slow, range(20))) == [number**2 for number in range(20)]


def test_an_error_is_raised_in_place_of_its_result() -> None:
    def make(number: int) -> int:
        if number == 4:
            raise ValueError("four")
        return number

    found = _prefetch(make, itertools.count())
    assert [next(found) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="four"):
        next(found)


def test_a_bounded_number_of_results_is_prefetched() -> None:
    started: list[int] = []
    found = _prefetch(started.append, range(100))
    next(found)
    deadline = time.monotonic() + 10
    while len(started) < _AHEAD + 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(started) == _AHEAD + 1


def test_closing_the_iterator_early_ends_its_thread() -> None:
    before = threading.active_count()
    found = _prefetch(lambda number: number, itertools.count())
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
