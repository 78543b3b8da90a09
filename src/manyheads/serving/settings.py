"""How a server is run: where it listens, what it allows, how it computes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.errors import UsageError

__all__ = ["ServeSettings"]

PUBLIC_REQUESTS = 120  # a minute, of one key or address, where others than this machine can ask


@dataclass(frozen=True)
class ServeSettings:
    """All of it, with the defaults of the command line. Names are LibreTranslate's where the meaning is.

    Attributes:
        host, port: where to listen; port 0 takes a free one.
        public: listen beyond this machine although no key is asked for.
        host_names: by which names clients may call (the Host header); those of this machine always on loopback.
        cors_origins: web pages of which origins may read answers; "*" is all.
        keys: the file of `manyheads keys`; given, every computing request needs one of its keys.
        metrics_token: what `/metrics` asks for; None switches it off.
        trust_forwarded_for: the client's address is the last one of X-Forwarded-For: only behind a proxy.
        char_limit: characters a request.
        batch_limit: texts a request.
        alternatives_limit: further translations a text.
        body_limit: bytes of a request's body.
        queue: requests that are waited for or computed at the same time; more are refused with 503.
        timeout: seconds a request may take.
        req_limit: requests a minute of one key or address, 0 is any number; None is any number on loopback and
            120 elsewhere.
        max_batch_tokens: source tokens x beam decoded together.
        max_wait_ms: how long a text waits for others to be decoded with it, while a worker is free.
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
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def requests_a_minute(self) -> int:
        """Of one key or address; 0 is any number."""
        if self.req_limit is not None:
            return self.req_limit
        return 0 if self.is_loopback else PUBLIC_REQUESTS
