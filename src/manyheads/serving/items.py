"""What the common queue holds, and what it asks of those who compute it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from manyheads.search.interface import Abandoned

__all__ = ["Group", "Item", "JoinableGroup", "Running", "Stopped", "Ticket", "give"]


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Group(Hashable, Protocol):
    """What knows how to compute items; items of equal groups are computed together."""

    def compute(self, payloads: Sequence[Any], abandoned: Abandoned) -> Sequence[Any]:
        """The results of some items, in order; those that are abandoned meanwhile may be anything."""
        ...


class Running(Protocol):
    """Items in the middle of being computed, a step at a time."""

    @property
    def parts(self) -> int:
        """Batches of which an item is left."""
        ...

    @property
    def full(self) -> bool:
        """Whether no more should join for now."""
        ...

    def add(self, payloads: Sequence[Any], abandoned: Abandoned, tell: Callable[[int, Any], None]) -> None:
        """Let items join; `tell` gets the number of each and its result, as soon as that is known."""
        ...

    def step(self) -> None:
        """Go one step further."""
        ...


@runtime_checkable
class JoinableGroup(Group, Protocol):
    """A group that can compute in steps."""

    def begin(self) -> Running:
        """Nothing yet; it belongs to one thread."""
        ...


class Ticket:
    """Stands for a request: `stop` ends all its work."""

    def __init__(self) -> None:
        self.stopped = False
        self._futures: list[Future[Any]] = []
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Nobody waits any more: what waits for results is woken, what is computed ends at its next step."""
        with self._lock:
            self.stopped = True
            futures, self._futures = self._futures, []
        for future in futures:
            give(future, error=Stopped())

    def keep(self, futures: Sequence[Future[Any]]) -> None:
        """Wake who waits for these when the request is stopped.

        Raises:
            Stopped: it has been.
        """
        with self._lock:
            if self.stopped:
                raise Stopped
            self._futures += futures


@dataclass(eq=False)
class Item:
    """Something to compute.

    Attributes:
        group: who computes it.
        payload: what the group knows of it.
        size: tokens that it takes of a batch.
        ticket: of its request.
        future: gets the result.
        since: when it came, in seconds of the monotonic clock.
    """

    group: Group
    payload: Any
    size: int
    ticket: Ticket
    future: Future[Any] = field(default_factory=Future)
    since: float = field(default_factory=monotonic)


def give(future: Future[Any], result: Any = None, *, error: Exception | None = None) -> None:
    """Give a result to who waits for it, unless something has been given before."""
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except Exception:  # InvalidStateError: it was stopped, or finished, in the same moment
        if not future.done():
            raise
