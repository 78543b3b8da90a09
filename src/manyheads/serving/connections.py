"""A connection that does not wait for ever: uvicorn's, with a time limit for each request to arrive."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

SECONDS_TO_ARRIVE = 20.0  # from the first byte of a request, or the opening of a connection, to the request's end
MOST_CONNECTIONS = 1_000


class Connection(H11Protocol):
    """One of a client; closed when a request does not arrive in time, or when there are too many."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; the clock runs."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self.watch()

    def data_received(self, data: bytes) -> None:
        """Some bytes have come: when they end a request, the clock stops until the next one begins."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self.watch()
        else:
            self.unwatch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self.unwatch()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer is out: the next request may take its time to begin, as long as connections are kept."""
        super().on_response_complete()
        if self.conn.their_state is not h11.SEND_BODY:
            self.unwatch()

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
        """Refuse what is no HTTP, in the shape of all refusals."""
        self.unwatch()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        content = json.dumps({"error": "Invalid HTTP request"}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=content),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
