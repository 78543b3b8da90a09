"""The rate limit of requests per client."""

from __future__ import annotations

from tests.clocks import Clock

from manyheads.serving.access import MAX_BUCKETS, RateLimiter


def test_a_bucket_holds_the_requests_of_a_minute_and_refills_evenly() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    assert [limiter.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert limiter.take("a", 60) == 1.0  # a second until the next
    assert limiter.take("b", 60) == 0.0  # another client
    clock.now += 0.5
    assert limiter.take("a", 60) == 0.5  # a refused request costs nothing
    clock.now += 0.5
    assert limiter.take("a", 60) == 0.0
    clock.now += 1_000
    assert [limiter.take("a", 60) > 0 for _ in range(61)] == [False] * 60 + [
        True
    ]  # never more than the requests of a minute


def test_a_limit_of_zero_allows_any_number_of_requests() -> None:
    limiter = RateLimiter(Clock())
    assert not any(limiter.take("a", 0) for _ in range(1_000))


def test_the_oldest_buckets_are_dropped() -> None:
    limiter = RateLimiter(Clock())
    for number in range(MAX_BUCKETS + 5):
        limiter.take(str(number), 10)
    assert len(limiter.levels) == MAX_BUCKETS
    assert "4" not in limiter.levels
