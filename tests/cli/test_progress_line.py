"""The text of a progress line."""

from __future__ import annotations

import pytest
from tests.clocks import Clock

from manyheads.cli.progress_line import Phase, bar, duration


@pytest.mark.parametrize(
    ("total", "done", "shown"),
    [
        (4_000, 1_000, ["translating", "25%", "1,000/4,000 lines", "0:30 left"]),
        (4_000, 0, ["translating", "0%", "0/4,000 lines", "0:10"]),
        (None, 1_000, ["translating", "1,000 lines", "0:10"]),
        (None, 0, ["translating", "0:10"]),
    ],
)
def test_a_phase_shows_its_progress_and_the_remaining_or_elapsed_time(
    total: int | None, done: int, shown: list[str]
) -> None:
    clock = Clock()
    phase = Phase("translating", total, "lines", clock)
    clock.now += 10
    phase.advance(done)
    assert [segment.text for segment in phase.segments(with_bar=False)] == shown


def test_the_length_of_a_bar_is_the_share_that_is_done() -> None:
    assert [bar(share).text.count("━") for share in (0.0, 0.25, 0.5, 1.0, 1.5)] == [0, 6, 12, 24, 24]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00"),
        (59.6, "1:00"),
        (61, "1:01"),
        (3_600, "1:00:00"),
        (90_061, "25:01:01"),
        (float("nan"), "?"),
        (-1, "0:00"),
    ],
)
def test_durations_are_shown_as_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
