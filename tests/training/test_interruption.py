"""Long computations report their progress, and end when a stop is requested."""

from __future__ import annotations

import pytest
from tests.training.parts import CollectingListener

from manyheads.training.interruption import UNWATCHED, Interrupted, Watch


def test_a_phase_without_a_stop_request_ends_and_is_counted() -> None:
    listener = CollectingListener()
    with Watch(listener).phase("counting", 5, "items") as advance:
        advance(2)
        advance(3)
    assert listener.phases == [("counting", 5)]


def count_in_phase(watch: Watch, seen: list[int], most: int = 100) -> None:
    with watch.phase("counting") as advance:
        for number in range(most):
            seen.append(number)
            advance(1)


def test_a_request_ends_a_phase_at_its_next_advance() -> None:
    seen: list[int] = []
    with pytest.raises(Interrupted):
        count_in_phase(Watch(stop=lambda: len(seen) >= 3), seen)
    assert seen == [0, 1, 2]


def test_a_stop_request_after_the_last_advance_ends_the_phase() -> None:
    answers = iter([False, False, True])
    seen: list[int] = []
    with pytest.raises(Interrupted):
        count_in_phase(Watch(stop=lambda: next(answers)), seen, most=2)
    assert seen == [0, 1]


def test_an_error_in_a_phase_is_raised_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), UNWATCHED.phase("counting"):
        _ = 1 // 0
