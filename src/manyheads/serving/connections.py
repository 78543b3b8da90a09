"""A connection that does not wait for ever: uvicorn's, with a time limit for each request to arrive."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Connection"]

SECONDS_TO_ARRIVE = 20.0  # from the first byte of a request, or the opening of a connection, to the request's end
LARGEST_HEAD = 2**18  # bytes of a request's head: 5,000 characters in its query string may take 45,000
MOST_CONNECTIONS = 1_000


class Connection(HttpToolsProtocol):
    """One of a client; closed when a request does not arrive in time, or when there are too many.

    Attributes:
        deadline: when it is closed, while a request arrives.
        head: bytes so far of a request's head, and of what has come with it; none while no head arrives.
        broken: something has come that is no HTTP; nothing further is read.
        replaying: a new parser is told of a head that has been read before.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.deadline: asyncio.TimerHandle | None = None
        self.head: int | None = None
        self.broken = False
        self.replaying = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; the clock runs."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self.watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self.unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes have come."""
        if self.broken:
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")
        if self.head is not None:
            self.head += len(data)
            if self.head > LARGEST_HEAD:
                self.send_400_response("")

    def decline_upgrade(self, data: bytes) -> None:
        """A client would rather speak another protocol, as Java's asks; it is answered in this one.

        The parser has ended with the head. Another one is told what it needs of that to read the rest.
        """
        self.parser = httptools.HttpRequestParser(self)
        framing = [pair for pair in self.headers if pair[0] in (b"content-length", b"transfer-encoding")]
        head = [b"POST / HTTP/1.1", *(b"%b: %b" % pair for pair in framing), b"", b""]
        self.replaying = True
        self.parser.feed_data(b"\r\n".join(head))
        self.replaying = False
        self.data_received(data)

    def on_message_begin(self) -> None:
        """A request begins to arrive; the clock runs."""
        if not self.replaying:
            super().on_message_begin()
            self.head = 0
            self.watch()

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        if not self.replaying:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; those behind a body are nothing to us."""
        if self.head is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head has arrived."""
        if not self.replaying:
            self.head = None
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of a request has arrived: the clock stops until the next one begins."""
        if not self.parser.should_upgrade():
            self.unwatch()
            super().on_message_complete()

    def watch(self) -> None:
        """Start the clock, unless it runs."""
        if self.deadline is None:
            self.deadline = self.loop.call_later(SECONDS_TO_ARRIVE, self.transport.abort)

    def unwatch(self) -> None:
        """Stop the clock."""
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the shape of all refusals.

        What follows a whole request that is not answered yet waits until it is, and then nobody reads it.
        """
        self.unwatch()
        self.broken = True
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        if not answering or not (self.pipeline or self.cycle.response_started):
            content = json.dumps({"error": "Invalid HTTP request"}).encode()
            self.transport.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(content), content)
            )
        self.transport.close()
