"""uvicorn's HTTP connection with a time limit for each request to arrive."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cached_property
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from manyheads.serving.access import client_network

_REQUEST_ARRIVAL_SECONDS = 20.0  # from a request's first byte, or the opening of its connection, to its last byte
_MAX_HEAD_BYTES = 2**18  # of a request line and headers: 5,000 characters in a query string may take 45,000
MAX_CONNECTIONS = 1_000
_INVALID_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 33\r\nconnection: close\r\n\r\n"
    b'{"error": "Invalid HTTP request"}'
)


class Connection(HttpToolsProtocol):
    """A connection that is closed when a request does not arrive in time, or to make room for a new connection.

    No setting of uvicorn (0.54) does this: its only connection timer, `timeout_keep_alive`, starts after a response
    and stops at the next byte, so a client that sends nothing, or its head or body slowly, holds a connection for
    ever; `limit_concurrency` closes no connection, and `h11_max_incomplete_event_size` does not hold for httptools.
    Besides, uvicorn loses the body of a request that offers an upgrade (as Java's HTTP client does), and answers
    invalid HTTP as plain text instead of JSON.

    Attributes:
        deadline: the timer that closes the connection, while a request arrives.
        head_bytes: bytes so far of a request's head, and of the data received with it; None while no head arrives.
        broken: whether invalid HTTP was received; nothing further is read.
        waits_since: time of the loop at which the connection was opened, or its last request was answered.
        replaying: whether a new parser is fed a head that was read before.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.deadline: asyncio.TimerHandle | None = None
        self.head_bytes: int | None = None
        self.broken = False
        self.replaying = False
        self.waits_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of a new connection; if there are too many, make room."""
        super().connection_made(transport)
        self.start_timer()
        if len(self.connections) > MAX_CONNECTIONS:
            self.make_room()

    @cached_property
    def address(self) -> str | None:
        """Return the client's address or network."""
        return client_network(self.client[0]) if self.client else None

    @property
    def waits_for_client(self) -> bool:
        """Return whether no request is being answered, or its answer is not read."""
        answering = self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body)
        return not (answering or self.pipeline) or self.flow.write_paused

    def make_room(self) -> None:
        """Close every twentieth connection, or this new one if no other waits for its client.

        Those of the address with the most waiting connections are closed first, the longest waiting before others.
        Behind a proxy all clients have one address, hence no maximum for each address.
        """
        others = cast("set[Connection]", self.connections - {self})
        waiting = [other for other in others if other.waits_for_client]
        counts = Counter(other.address for other in waiting)
        waiting.sort(key=lambda other: (-counts[other.address], other.waits_since))
        for idle in waiting[: 1 + MAX_CONNECTIONS // 20] or [self]:
            self.connections.discard(idle)
            idle.transport.abort()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self.waits_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self.stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; refuse a head that is too large."""
        if self.broken:
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")
        if self.head_bytes is not None:
            self.head_bytes += len(data)
            if self.head_bytes > _MAX_HEAD_BYTES:
                self.send_400_response("")

    def decline_upgrade(self, data: bytes) -> None:
        """Continue in HTTP/1.1 where a client offers another protocol.

        httptools stops parsing after such a head. A new parser is fed the framing headers, and so reads the body.
        """
        self.parser = httptools.HttpRequestParser(self)
        framing = [pair for pair in self.headers if pair[0] in (b"content-length", b"transfer-encoding")]
        head = [b"POST / HTTP/1.1", *(b"%b: %b" % pair for pair in framing), b"", b""]
        self.replaying = True
        self.parser.feed_data(b"\r\n".join(head))
        self.replaying = False
        self.data_received(data)

    def on_message_begin(self) -> None:
        """Start the timer at a request's first byte."""
        if not self.replaying:
            super().on_message_begin()
            self.head_bytes = 0
            self.start_timer()

    def on_url(self, url: bytes) -> None:
        """Receive a part of the request's URL."""
        if not self.replaying:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header; trailers after a chunked body are ignored."""
        if self.head_bytes is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting the bytes of the head."""
        if not self.replaying:
            self.head_bytes = None
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the timer until the next request begins."""
        if not self.parser.should_upgrade():
            self.stop_timer()
            super().on_message_complete()

    def start_timer(self) -> None:
        """Close the connection after the time limit, unless the timer runs already."""
        if self.deadline is None:
            self.deadline = self.loop.call_later(_REQUEST_ARRIVAL_SECONDS, self.transport.abort)

    def stop_timer(self) -> None:
        """Cancel the timer."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with a JSON error and close the connection.

        If a complete request before it is not answered yet, that request is answered first, and nothing more is
        read.
        """
        self.stop_timer()
        self.broken = True
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        if not answering or not (self.pipeline or self.cycle.response_started):
            self.transport.write(_INVALID_REQUEST)
        self.transport.close()
