"""How often somebody may ask."""

from __future__ import annotations

from manyheads.serving.access import MAX_BUCKETS, RateLimiter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_holds_a_minute_and_fills_evenly() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    assert [limiter.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert limiter.take("a", 60) == 1.0  # a second until the next
    assert limiter.take("b", 60) == 0.0  # of somebody else
    clock.now += 0.5
    assert limiter.take("a", 60) == 0.5  # asking in vain costs nothing
    clock.now += 0.5
    assert limiter.take("a", 60) == 0.0
    clock.now += 1_000
    assert [limiter.take("a", 60) > 0 for _ in range(61)] == [False] * 60 + [True]  # never more than a minute's


def test_zero_is_any_number() -> None:
    limiter = RateLimiter(Clock())
    assert not any(limiter.take("a", 0) for _ in range(1_000))


def test_those_that_asked_long_ago_are_forgotten() -> None:
    limiter = RateLimiter(Clock())
    for number in range(MAX_BUCKETS + 5):
        limiter.take(str(number), 10)
    assert len(limiter.levels) == MAX_BUCKETS
    assert "4" not in limiter.levels
