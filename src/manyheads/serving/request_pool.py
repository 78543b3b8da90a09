"""A pool of threads for computing requests, with a time limit and cancellation when the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import Receive

from manyheads.serving.batching import Batcher
from manyheads.serving.queue_items import RequestCancelled, RequestHandle
from manyheads.serving.responses import ApiError, ClientDisconnected

_Result = TypeVar("_Result")


class RequestPool:
    """A bounded pool of threads, one per computing request.

    Attributes:
        max_requests: number of requests at once.
        timeout: seconds that a request may take.
        batcher: computes the items of the requests.
        running: number of requests now; a cancelled request counts until its thread has ended.
        draining: whether new requests are refused because the server stops.
        threads: the thread pool.
    """

    def __init__(self, max_requests: int, timeout: float, batcher: Batcher) -> None:
        self.max_requests = max_requests
        self.batcher = batcher
        self.timeout = timeout
        self.running = 0
        self.draining = False
        self.handles: set[RequestHandle] = set()
        self.threads = ThreadPoolExecutor(max_requests, thread_name_prefix="manyheads-request")

    def overload_error(self) -> ApiError | None:
        """Return the error for a further request, or None if it can be accepted."""
        if self.draining:
            return ApiError(503, "The server is shutting down", retry_after=5)
        if self.running >= self.max_requests:
            return ApiError(503, "The server is busy", retry_after=1)
        return None

    async def run(self, receive: Receive, task: Callable[[RequestHandle], _Result], times: float = 1.0) -> _Result:
        """Run a task in a thread of the pool and return its result.

        Args:
            receive: `receive` of the request; its body has been read, so the next message is the client's
                disconnect.
            task: called with the request's handle, which is cancelled when the task should stop.
            times: how many times `timeout` the request may take.

        Raises:
            ApiError: there are too many requests (503), or this one took too long (504).
            ClientDisconnected: the client closed its connection.
            Exception: any error that the task raises.
        """
        overload = self.overload_error()
        if overload is not None:
            raise overload
        handle = RequestHandle()
        future = self.start(handle, task)
        disconnect = asyncio.ensure_future(_disconnected(receive))
        try:
            both: set[asyncio.Future[Any]] = {future, disconnect}
            done, _ = await asyncio.wait(both, timeout=times * self.timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            handle.cancel()
            raise
        finally:
            disconnect.cancel()
        if future in done:
            try:
                return future.result()
            except RequestCancelled as error:  # by `cancel_all`
                raise ApiError(503, "The server is shutting down", retry_after=5) from error
        handle.cancel()
        if done:
            raise ClientDisconnected
        raise ApiError(504, f"The request took longer than {times * self.timeout:g} seconds and was stopped")

    def start(self, handle: RequestHandle, task: Callable[[RequestHandle], _Result]) -> asyncio.Future[_Result]:
        """Start a task in a thread; the request counts as running until the thread has finished it."""
        self.running += 1
        self.handles.add(handle)

        def work() -> _Result:
            with self.batcher.request_slot():
                return task(handle)

        future = asyncio.get_running_loop().run_in_executor(self.threads, work)

        def ended(done: asyncio.Future[Any]) -> None:
            self.running -= 1
            self.handles.discard(handle)
            if not done.cancelled():
                done.exception()  # retrieved, so that asyncio does not log it where the caller has stopped waiting

        future.add_done_callback(ended)
        return future

    def cancel_all(self) -> None:
        """Cancel all running requests."""
        for handle in list(self.handles):
            handle.cancel()


async def _disconnected(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
