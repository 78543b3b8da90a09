"""API keys and rate limits of computing requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network, ip_address
from time import monotonic

from starlette.requests import Request
from starlette.types import Scope

from manyheads.serving.fields import Fields
from manyheads.serving.keys import Key, KeyFile, KeyRing
from manyheads.serving.responses import ApiError
from manyheads.serving.settings import ServeSettings

_MAX_SUGGESTIONS = 30  # a minute and key or address
_KEY_DIGITS = 12  # of the digest of a key, stored with a suggestion
_MAX_BUCKETS = 10_000  # the most recently used ones; an idle bucket is full again and can be dropped


class Access:
    """Checks a request's API key and the request rate of its key or address."""

    def __init__(self, settings: ServeSettings) -> None:
        """Read the key file, if there is one."""
        self.settings = settings
        self.ring = KeyRing(KeyFile(settings.keys)) if settings.keys else None
        self.limiter = _RateLimiter()

    def check(self, request: Request, fields: Fields) -> Key | None:
        """Raise unless the request is allowed; return its key, None if no keys are needed.

        Raises:
            ApiError: a key is missing (400) or wrong (403), or there were too many requests (429).
        """
        client, limit, key = f"address {self.address(request.scope)}", self.settings.requests_a_minute, None
        if self.ring is not None:
            secret = fields.text("api_key") or bearer(request.scope)
            if secret is None:
                raise ApiError(400, "Please contact the server operator to get an API key")
            key = self.ring.find(secret)
        if key is not None:
            client, limit = f"key {key.name}", limit if key.req_limit is None else key.req_limit
        self._take(client, limit)
        if self.ring is not None and key is None:
            raise ApiError(403, "Invalid API key")
        return key

    def check_suggestion(self, request: Request, fields: Fields) -> str | None:
        """Raise unless the request may store a suggestion; return the first digits of the digest of its key."""
        key = self.check(request, fields)
        self._take(f"suggestions {key.name if key else self.address(request.scope)}", _MAX_SUGGESTIONS)
        return key.sha256[:_KEY_DIGITS] if key else None

    def _take(self, client: str, limit: int) -> None:
        """Count a request; raise `ApiError` 429 if the client has sent more than `limit` a minute."""
        seconds = self.limiter.take(client, limit)
        if seconds:
            raise ApiError(429, f"Slowdown: {limit} per 1 minute", retry_after=seconds)

    def address(self, scope: Scope) -> str:
        """Return the client's address; behind a trusted proxy, the last entry of X-Forwarded-For, if it is one.

        Other headers, such as Forwarded, are not read: a proxy that does not write them passes on a client's own.
        """
        client = scope.get("client")
        addresses = [client[0]] if client else []
        if self.settings.trust_forwarded_for:
            addresses.insert(0, (header(scope, b"x-forwarded-for") or "").rpartition(",")[2])
        return next(filter(None, map(client_network, addresses)), "unknown")


def client_network(text: str) -> str | None:
    """Return an address as each client has one: IPv4, or the /64 network of IPv6; None if it is no address.

    A proxy may write it with a port or a zone: `192.0.2.1:443`, `[2001:db8::1]:443`, `fe80::1%eth0`.
    """
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address), 64), strict=False))


class _RateLimiter:
    """Token buckets: each holds as many tokens as requests are allowed a minute, and refills evenly.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.levels = OrderedDict[str, tuple[float, float]]()  # client: (tokens, time of the last take)

    def take(self, client: str, per_minute: int) -> float:
        """Take a token; return 0, or the seconds until a token is available.

        Args:
            client: the name of the bucket.
            per_minute: requests allowed a minute; 0 means no limit.
        """
        if not per_minute:
            return 0.0
        now = self.clock()
        level, since = self.levels.pop(client, (float(per_minute), now))
        level = min(float(per_minute), level + (now - since) * per_minute / 60)
        seconds = 0.0 if level >= 1 else (1 - level) * 60 / per_minute
        self.levels[client] = (level if seconds else level - 1, now)
        while len(self.levels) > _MAX_BUCKETS:
            self.levels.popitem(last=False)
        return seconds


def bearer(scope: Scope) -> str | None:
    """Return the token of an `Authorization: Bearer` header, or None."""
    kind, _, secret = (header(scope, b"authorization") or "").partition(" ")
    return secret.strip() or None if kind.lower() == "bearer" else None


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a request header, the last one where it is repeated, or None."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[-1].decode("latin-1") if values else None
