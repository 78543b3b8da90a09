"""The rate limit of requests per client."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.clocks import Clock

from manyheads.serving.access import _MAX_BUCKETS, _MAX_SUGGESTIONS, Access, _RateLimiter
from manyheads.serving.fields import Fields
from manyheads.serving.responses import ApiError
from manyheads.serving.settings import ServeSettings

PROXY = "198.51.100.7"


@pytest.mark.parametrize(
    ("forwarded", "bucket"),
    [
        (["192.0.2.1"], "192.0.2.1"),
        (["192.0.2.1:5678"], "192.0.2.1"),
        (['"192.0.2.1:5678"'], "192.0.2.1"),
        (["203.0.113.9, 192.0.2.1 "], "192.0.2.1"),
        (["203.0.113.9", "192.0.2.1\t"], "192.0.2.1"),  # of several headers the last, which the proxy added
        (["[2001:db8::1]:443"], "2001:db8::/64"),
        (["[2001:db8::1]"], "2001:db8::/64"),
        (["2001:db8::1"], "2001:db8::/64"),
        (["2001:DB8:0:0:ffff::2"], "2001:db8::/64"),  # one client has all addresses of a /64
        (["2001:db8:0:1::1"], "2001:db8:0:1::/64"),
        (["fe80::1%eth0"], "fe80::/64"),
        (["[fe80::2%25eth0]:80"], "fe80::/64"),
        (["::ffff:192.0.2.1"], "192.0.2.1"),
        (["[::ffff:c000:201]:80"], "192.0.2.1"),
        (["unknown"], PROXY),  # no address: the bucket of the connection, so that junk makes no new ones
        (["_hidden:80"], PROXY),
        (["192.0.2.1, "], PROXY),
        (["300.1.1.1"], PROXY),
        (["192.0.2.1 192.0.2.2"], PROXY),
        ([""], PROXY),
        (["\xff\x00[", "]"], PROXY),
        ([], PROXY),
    ],
)
def test_a_client_behind_a_proxy_has_one_bucket(forwarded: list[str], bucket: str) -> None:
    headers = [(b"forwarded", b"for=203.0.113.5")]  # a header that the proxy may pass on from the client
    headers += [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    scope = {"headers": headers, "client": (PROXY, 4321)}
    assert Access(ServeSettings(trust_forwarded_for=True)).address(scope) == bucket
    assert Access(ServeSettings()).address(scope) == PROXY


@pytest.mark.parametrize(
    ("client", "bucket"),
    [(("2001:db8::77", 1), "2001:db8::/64"), (("::ffff:192.0.2.1", 1), "192.0.2.1"), (None, "unknown")],
)
def test_a_client_without_a_proxy_has_one_bucket(client: tuple[str, int] | None, bucket: str) -> None:
    assert Access(ServeSettings()).address({"headers": [], "client": client}) == bucket


def test_suggestions_have_a_limit_of_their_own_where_requests_have_none() -> None:
    access = Access(ServeSettings())
    one, other = (
        SimpleNamespace(scope={"headers": [], "client": (name, 1)}) for name in ("192.0.2.1", "192.0.2.2")
    )
    fields = Fields({}, is_json=True)
    assert [access.check_suggestion(one, fields) for _ in range(_MAX_SUGGESTIONS)] == [None] * _MAX_SUGGESTIONS  # type: ignore[arg-type]
    with pytest.raises(ApiError, match=f"Slowdown: {_MAX_SUGGESTIONS} per 1 minute"):
        access.check_suggestion(one, fields)  # type: ignore[arg-type]
    access.check_suggestion(other, fields)  # type: ignore[arg-type]
    access.check(one, fields)  # type: ignore[arg-type]


def test_a_bucket_holds_the_requests_of_a_minute_and_refills_evenly() -> None:
    clock = Clock()
    limiter = _RateLimiter(clock)
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
    limiter = _RateLimiter(Clock())
    assert not any(limiter.take("a", 0) for _ in range(1_000))


def test_the_oldest_buckets_are_dropped() -> None:
    limiter = _RateLimiter(Clock())
    for number in range(_MAX_BUCKETS + 5):
        limiter.take(str(number), 10)
    assert len(limiter.levels) == _MAX_BUCKETS
    assert "4" not in limiter.levels
