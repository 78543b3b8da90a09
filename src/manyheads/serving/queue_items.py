"""Items of the common queue, and the interfaces of the groups that compute them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from manyheads.search.interface import Cancelled


class RequestCancelled(Exception):
    """The request was cancelled: its client disconnected, its time limit passed, or the server stops."""


class BatchGroup(Hashable, Protocol):
    """Computes items; items of equal groups may be computed in one batch."""

    def compute(self, payloads: Sequence[Any], cancelled: Cancelled) -> Sequence[Any]:
        """Return the results in the order of the payloads; results of cancelled items are ignored."""
        ...


class ContinuousBatch(Protocol):
    """Items that are computed step by step; further items may join between two steps."""

    @property
    def batches(self) -> Sequence[object]:
        """The batches of items that were added together, while any of their items is unfinished."""
        ...

    @property
    def full(self) -> bool:
        """Whether no further items should be added for now."""
        ...

    def add(self, payloads: Sequence[Any], cancelled: Cancelled, on_result: Callable[[int, Any], None]) -> None:
        """Add items; `on_result` is called with each item's index and its result as soon as it is known."""
        ...

    def step(self) -> None:
        """Compute one step of all items."""
        ...


@runtime_checkable
class ContinuousBatchGroup(BatchGroup, Protocol):
    """A group that supports continuous batching."""

    def begin(self) -> ContinuousBatch:
        """Return an empty batch, for use by one thread."""
        ...


class RequestHandle:
    """A request's handle for cancellation: `cancel` ends all its work.

    Attributes:
        cancelled: whether the request was cancelled.
    """

    def __init__(self) -> None:
        self.cancelled = False
        self._futures: list[Future[Any]] = []
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Wake threads that wait for results of the request; running computation ends at its next step."""
        with self._lock:
            self.cancelled = True
            futures, self._futures = self._futures, []
        for future in futures:
            set_result(future, error=RequestCancelled())

    def attach(self, futures: Sequence[Future[Any]]) -> None:
        """Let `cancel` set `RequestCancelled` in these futures.

        Raises:
            RequestCancelled: the request was cancelled before.
        """
        with self._lock:
            if self.cancelled:
                raise RequestCancelled
            self._futures += futures


@dataclass(eq=False)
class QueueItem:
    """One piece of work in the queue, such as a sentence.

    Attributes:
        group: the group that computes it.
        payload: the group's input.
        size: tokens that the item adds to a batch.
        handle: handle of the item's request.
        future: gets the result.
        since: arrival time, in seconds of the monotonic clock.
    """

    group: BatchGroup
    payload: Any
    size: int
    handle: RequestHandle
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=monotonic)


def set_result(future: Future[Any], result: Any = None, *, error: Exception | None = None) -> None:
    """Set a future's result or error, unless it has one already."""
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except Exception:  # InvalidStateError: the request was cancelled, or finished, at the same moment
        if not future.done():
            raise
