"""Requests that compute: how many at once, how long each, and what happens to those that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Receive

from manyheads.serving.answers import ClientGone, Refusal
from manyheads.serving.batching import Batcher
from manyheads.serving.items import Stopped, Ticket

__all__ = ["Work"]

Result = TypeVar("Result")


class Work:
    """A bounded number of threads, one a request; they wait for the batches that their texts are in.

    Attributes:
        most: requests at once.
        seconds: a request may take.
        batcher: what the requests wait for.
        running: requests now; one that was given up counts until its thread has really ended.
        draining: no new ones are taken.
    """

    def __init__(self, most: int, seconds: float, batcher: Batcher) -> None:
        self.most = most
        self.batcher = batcher
        self.seconds = seconds
        self.running = 0
        self.draining = False
        self.tickets: set[Ticket] = set()
        self.pool = ThreadPoolExecutor(most, thread_name_prefix="manyheads-request")

    def refusal(self) -> Refusal | None:
        """Why no further request is taken now, if so."""
        if self.draining:
            return Refusal(503, "The server is shutting down", retry_after=5)
        if self.running >= self.most:
            return Refusal(503, "The server is busy", retry_after=1)
        return None

    async def run(self, receive: Receive, task: Callable[[Ticket], Result]) -> Result:
        """Do a task in a thread of its own, and wait for it.

        Args:
            receive: of the request, whose body has been read: it tells when the client leaves.
            task: what to do; its ticket says when to stop.

        Raises:
            Refusal: there are too many (503), or it took too long (504).
            ClientGone: the client left.
            Whatever the task raises.
        """
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        ticket = Ticket()
        future = self.begin(ticket, task)
        leaving = asyncio.ensure_future(gone(receive))
        try:
            both: set[asyncio.Future[Any]] = {future, leaving}
            done, _ = await asyncio.wait(both, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            ticket.stop()
            raise
        finally:
            leaving.cancel()
        if future in done:
            try:
                return future.result()
            except Stopped as error:  # by `stop_all`
                raise Refusal(503, "The server is shutting down", retry_after=5) from error
        ticket.stop()
        if done:
            raise ClientGone
        raise Refusal(504, f"The request took longer than {self.seconds:g} seconds and was stopped")

    def begin(self, ticket: Ticket, task: Callable[[Ticket], Result]) -> asyncio.Future[Result]:
        """Start a task; it is one of those that run until its thread is done with it."""
        self.running += 1
        self.tickets.add(ticket)

        def work() -> Result:
            with self.batcher.taking_turns():
                return task(ticket)

        future = asyncio.get_running_loop().run_in_executor(self.pool, work)

        def ended(done: asyncio.Future[Any]) -> None:
            self.running -= 1
            self.tickets.discard(ticket)
            if not done.cancelled():
                done.exception()  # taken note of, also where nobody waits any more

        future.add_done_callback(ended)
        return future

    def stop_all(self) -> None:
        """Give up all that runs."""
        for ticket in list(self.tickets):
            ticket.stop()


async def gone(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
