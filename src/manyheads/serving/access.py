"""API keys and rate limits of computing requests."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import Scope

from manyheads.serving.fields import Fields
from manyheads.serving.keys import KeyFile, KeyRing
from manyheads.serving.rate_limit import RateLimiter
from manyheads.serving.responses import ApiError
from manyheads.serving.settings import ServeSettings

__all__ = ["Access", "bearer", "header"]


class Access:
    """Checks a request's API key and the request rate of its key or address."""

    def __init__(self, settings: ServeSettings) -> None:
        """Read the key file, if there is one.

        Raises:
            DataError: the file of keys cannot be read.
        """
        self.settings = settings
        self.ring = KeyRing(KeyFile(settings.keys)) if settings.keys else None
        self.limiter = RateLimiter()

    def check(self, request: Request, fields: Fields) -> None:
        """Raise unless the request is allowed.

        Raises:
            ApiError: a key is missing (400) or wrong (403), or there were too many requests (429).
        """
        address, limit = self.address(request.scope), self.settings.requests_a_minute
        if self.ring is None:
            self.count(f"address {address}", limit)
            return
        secret = fields.text("api_key") or bearer(request.scope)
        if secret is None:
            raise ApiError(400, "Please contact the server operator to get an API key")
        key = self.ring.find(secret)
        if key is None:
            self.count(f"address {address}", limit)
            raise ApiError(403, "Invalid API key")
        self.count(f"key {key.name}", limit if key.req_limit is None else key.req_limit)

    def count(self, client: str, limit: int) -> None:
        """Count a request of a key or address.

        Args:
            client: the bucket's name, such as "key weblate".
            limit: requests per minute; 0 means no limit.

        Raises:
            ApiError: 429, the limit is exceeded.
        """
        seconds = self.limiter.take(client, limit)
        if seconds:
            raise ApiError(429, f"Slowdown: {limit} per 1 minute", retry_after=seconds)

    def address(self, scope: Scope) -> str:
        """Return the client's address; behind a trusted proxy, the last entry of X-Forwarded-For."""
        if self.settings.trust_forwarded_for:
            forwarded = (header(scope, b"x-forwarded-for") or "").rpartition(",")[2].strip()
            if forwarded:
                return forwarded
        client = scope.get("client")
        return client[0] if client else "unknown"


def bearer(scope: Scope) -> str | None:
    """Return the token of an `Authorization: Bearer` header, or None."""
    kind, _, secret = (header(scope, b"authorization") or "").partition(" ")
    return secret.strip() or None if kind.lower() == "bearer" else None


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a request header, the last one where it is repeated, or None."""
    values = [value for other, value in scope["headers"] if other == name]
    return values[-1].decode("latin-1") if values else None
