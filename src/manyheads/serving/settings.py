"""Settings of a server: address, access, limits and computation."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.errors import UsageError

__all__ = ["ServeSettings"]

PUBLIC_REQUESTS = 120  # default per minute and key or address, where other machines can reach the server


@dataclass(frozen=True)
class ServeSettings:
    """All settings with the defaults of the command line; named as in LibreTranslate where the meaning is the same.

    Attributes:
        host, port: address to listen at; port 0 takes a free port.
        public: listen beyond this machine without keys.
        host_names: allowed Host headers; on loopback the names of this machine are always allowed.
        cors_origins: origins whose web pages may read responses; "*" allows all.
        keys: the file of `manyheads keys`; every computing request then needs one of its keys.
        metrics_token: token that `/metrics` requires; None disables the route.
        trust_forwarded_for: take the client's address from the last entry of X-Forwarded-For; only behind a proxy.
        char_limit: maximum characters per request.
        batch_limit: maximum texts per request.
        alternatives_limit: maximum further translations per text.
        body_limit: maximum bytes of a request's body.
        queue: maximum requests at once, waiting or computed; further ones are refused with 503.
        timeout: seconds that a request may take.
        req_limit: requests per minute and key or address, 0 means no limit; None means no limit on loopback and
            120 elsewhere.
        max_batch_tokens: token budget of a batch: source tokens x beam size, padding included.
        max_wait_ms: maximum batching delay in milliseconds, while a worker is free.
        engine, precision, device: see `Translator.load`.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    public: bool = False
    host_names: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    keys: Path | None = None
    metrics_token: str | None = field(default=None, repr=False)
    trust_forwarded_for: bool = False
    char_limit: int = 5_000
    batch_limit: int = 64
    alternatives_limit: int = 10
    body_limit: int = 2**20
    queue: int = 64
    timeout: float = 30.0
    req_limit: int | None = None
    max_batch_tokens: int = 4_096
    max_wait_ms: float = 2.0
    engine: str = "torch"
    precision: str = "fp32"
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("char_limit", "batch_limit", "body_limit", "queue", "timeout", "max_batch_tokens"):
            if not vars(self)[name] > 0:
                raise UsageError(f"--{name.replace('_', '-')} {vars(self)[name]} must be above 0.")
        if not (self.is_loopback or self.keys or self.public):
            raise UsageError(
                f"--host {self.host} lets everybody who reaches this machine use the server. Ask for keys with "
                "--keys FILE (manyheads keys add FILE NAME), or say --public if that is meant."
            )

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def requests_a_minute(self) -> int:
        """Return the default rate limit of a key or address; 0 means no limit."""
        if self.req_limit is not None:
            return self.req_limit
        return 0 if self.is_loopback else PUBLIC_REQUESTS
