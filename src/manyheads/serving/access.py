"""Who asks, and whether they may."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import Scope

from manyheads.serving.answers import Refusal
from manyheads.serving.fields import Fields
from manyheads.serving.keys import KeyFile, KeyRing
from manyheads.serving.limits import Buckets
from manyheads.serving.settings import ServeSettings

__all__ = ["Access", "bearer", "header"]


class Access:
    """Keys, and how often each key or address has asked."""

    def __init__(self, settings: ServeSettings) -> None:
        """Raises `DataError` when the file of keys cannot be read."""
        self.settings = settings
        self.ring = KeyRing(KeyFile(settings.keys)) if settings.keys else None
        self.buckets = Buckets()

    def check(self, request: Request, fields: Fields) -> None:
        """Let a request through.

        Raises:
            Refusal: a key is missing (400) or wrong (403), or there were too many requests (429).
        """
        address, limit = self.address(request.scope), self.settings.requests_a_minute
        if self.ring is None:
            self.count(f"address {address}", limit)
            return
        secret = fields.text("api_key") or bearer(request.scope)
        if secret is None:
            raise Refusal(400, "Please contact the server operator to get an API key")
        key = self.ring.find(secret)
        if key is None:
            self.count(f"address {address}", limit)
            raise Refusal(403, "Invalid API key")
        self.count(f"key {key.name}", limit if key.req_limit is None else key.req_limit)

    def count(self, who: str, limit: int) -> None:
        """Take a request from a bucket."""
        waiting = self.buckets.take(who, limit)
        if waiting:
            raise Refusal(429, f"Slowdown: {limit} per 1 minute", retry_after=waiting)

    def address(self, scope: Scope) -> str:
        """Where a request comes from."""
        if self.settings.trust_forwarded_for:
            forwarded = (header(scope, b"x-forwarded-for") or "").rpartition(",")[2].strip()
            if forwarded:
                return forwarded
        client = scope.get("client")
        return client[0] if client else "unknown"


def bearer(scope: Scope) -> str | None:
    """The key of an Authorization header."""
    kind, _, secret = (header(scope, b"authorization") or "").partition(" ")
    return secret.strip() or None if kind.lower() == "bearer" else None


def header(scope: Scope, name: bytes) -> str | None:
    """A header of a request, the last one of several."""
    found = [value for one, value in scope["headers"] if one == name]
    return found[-1].decode("latin-1") if found else None
