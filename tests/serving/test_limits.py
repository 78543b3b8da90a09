"""How often somebody may ask."""

from __future__ import annotations

from manyheads.serving.limits import MOST_BUCKETS, Buckets


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_holds_a_minute_and_fills_evenly() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    assert [buckets.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert buckets.take("a", 60) == 1.0  # a second until the next
    assert buckets.take("b", 60) == 0.0  # of somebody else
    clock.now += 0.5
    assert buckets.take("a", 60) == 0.5  # asking in vain costs nothing
    clock.now += 0.5
    assert buckets.take("a", 60) == 0.0
    clock.now += 1_000
    assert [buckets.take("a", 60) > 0 for _ in range(61)] == [False] * 60 + [True]  # never more than a minute's


def test_zero_is_any_number() -> None:
    buckets = Buckets(Clock())
    assert not any(buckets.take("a", 0) for _ in range(1_000))


def test_those_that_asked_long_ago_are_forgotten() -> None:
    buckets = Buckets(Clock())
    for number in range(MOST_BUCKETS + 5):
        buckets.take(str(number), 10)
    assert len(buckets.levels) == MOST_BUCKETS
    assert "4" not in buckets.levels
