"""Settings of a server: address, access, limits and computation."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.errors import UsageError

_FULL_TEXTS = 10  # texts of the maximum length that a request may hold
_PUBLIC_REQUESTS = 120  # default per minute and key or address, where other machines can reach the server


@dataclass(frozen=True)
class ServeSettings:
    """All settings with their defaults; named as in LibreTranslate where the meaning is the same.

    Each setting is an option of `manyheads serve`, whose help is the text below; None and an empty tuple stand for
    the default that the help of the option states.

    Attributes:
        host: address to listen on.
        port: port to listen on; 0 picks a free port.
        public: allow a --host that other machines can reach without requiring keys.
        keys: require an API key of this file, made by `manyheads serve keys`.
        host_names: host name that clients may use (Host header); may be repeated.
        cors_origins: web origin whose pages may read responses (CORS); * allows all; may be repeated.
        suggestions: store corrections that clients send to /suggest in this file, one JSON object a line.
        trust_forwarded_for: take client addresses from X-Forwarded-For; safe only behind a reverse proxy.
        metrics_token: enable /metrics for requests with this token; the environment variable keeps it out of
            process lists.
        char_limit: maximum characters per text; all texts of a request together may have ten times as many.
        batch_limit: maximum texts per request.
        alternatives_limit: maximum alternative translations per text.
        body_limit: maximum size of a request body in bytes.
        files: translate files of documents, as subtitles and office files (/translate_file).
        file_limit: maximum size of a file in bytes; its translation may take twenty times the request timeout.
        queue: maximum requests waiting or running; further requests are answered with status 503.
        timeout: request timeout in seconds.
        keep_alive: seconds that an idle connection stays open; behind a proxy, more than the proxy keeps it (nginx:
            60).
        req_limit: maximum requests per minute for one key or client address; 0 is unlimited.
        max_batch_tokens: maximum size of a batch: source tokens x beam size.
        max_wait_ms: maximum batching delay in milliseconds.
        beam: beam size; 1 is greedy search.
        glossary: file of terms and their translations, as for translate, for a server of one translator.
        match_source: write the end mark, the small first letter and the quotation marks of the source, as
            LibreTranslate does.
        engine: inference engine: native is the C code, torch are torch operators; auto takes the C code where it
            can compute.
        precision: number format of the computation; fp32 is exact, bf16 and int8 are faster.
        device: see `Translator.load`.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    public: bool = False
    host_names: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    keys: Path | None = None
    metrics_token: str | None = field(default=None, repr=False)
    suggestions: Path | None = None
    trust_forwarded_for: bool = False
    char_limit: int = 5_000
    batch_limit: int = 64
    alternatives_limit: int = 10
    body_limit: int = 2**20
    files: bool = True
    file_limit: int = 10 * 2**20
    queue: int = 64
    timeout: float = 30.0
    keep_alive: int = 15
    req_limit: int | None = None
    max_batch_tokens: int = 4_096
    max_wait_ms: float = 2.0
    beam: int | None = None
    glossary: Path | None = None
    match_source: bool = True
    engine: str = "auto"
    precision: str = "fp32"
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in (
            "char_limit",
            "batch_limit",
            "body_limit",
            "file_limit",
            "queue",
            "timeout",
            "keep_alive",
            "max_batch_tokens",
        ):
            if not vars(self)[name] > 0:
                raise UsageError(f"--{name.replace('_', '-')} {vars(self)[name]} must be above 0.")
        if not (self.is_loopback or self.keys or self.public):
            raise UsageError(
                f"--host {self.host} lets everybody who reaches this machine use the server. Ask for keys with "
                "--keys FILE (manyheads serve keys add FILE NAME), or say --public if that is meant."
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
    def has_other_clients(self) -> bool:
        """Return whether other machines can reach the server, directly or through a proxy."""
        return self.trust_forwarded_for or not self.is_loopback

    def describe_limits(self) -> str:
        """Return the limits of clients with the options that change them."""
        rate = f"{self.requests_a_minute:,} requests" if self.requests_a_minute else "any number of requests"
        return (
            f"limits: {rate} a minute and {'key' if self.keys else 'address'} (--req-limit), {self.queue} at once "
            f"(--queue); a request of {self.timeout:g} s (--timeout), {self.body_limit:,} bytes (--body-limit) and "
            f"{self.batch_limit} texts (--batch-limit), each of {self.char_limit:,} characters (--char-limit)"
        )

    @property
    def request_char_limit(self) -> int:
        """Return the maximum number of characters of all texts of a request together."""
        return _FULL_TEXTS * self.char_limit

    @property
    def requests_a_minute(self) -> int:
        """Return the default rate limit of a key or address; 0 means no limit.

        On a loopback address there is a limit only behind a proxy that lets other machines in.
        """
        if self.req_limit is not None:
            return self.req_limit
        return _PUBLIC_REQUESTS if self.has_other_clients else 0
