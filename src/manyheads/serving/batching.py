"""Work of many requests computed together.

Requests hand in items; workers (threads) take the one that has waited longest, and with it those of its group
that are nearest to it in size, up to a number of tokens, padding included. What comes out for an item does not
depend on the others: groups promise that of what they compute, and where a batch fails, its halves are tried, so
that one item that cannot be computed fails alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from manyheads.search.interface import Abandoned

__all__ = ["Batcher", "Group", "Item", "Stopped", "Ticket"]

PATIENCE = 10  # times as long an item waits for others while another worker computes, whose next batch it may join
TURNS = 2  # threads of requests that work at a time; all others wait for results, or for their turn
FEWEST_TOKENS = 256  # of a batch that is kept small so that other workers have something to do


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Group(Hashable, Protocol):
    """What knows how to compute items; items of equal groups are computed together."""

    def compute(self, payloads: Sequence[Any], abandoned: Abandoned) -> Sequence[Any]:
        """The results of some items, in order; those that are abandoned meanwhile may be anything."""
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


@dataclass
class Counts:
    """What has been computed: batches, items in them, and the seconds that took, added up over the workers."""

    batches: int = 0
    items: int = 0
    seconds: float = 0.0


class Batcher:
    """A queue and the workers that empty it.

    Args:
        workers: threads that compute.
        max_tokens: of a batch, padding included; one item that is larger is a batch of its own.
        max_wait: seconds that an item waits for others while all workers are free; ten times that while one is not.
        begin: called in each worker first.
    """

    def __init__(
        self, *, workers: int, max_tokens: int, max_wait: float, begin: Callable[[], None] = lambda: None
    ) -> None:
        self.max_tokens = max_tokens
        self.max_wait = max_wait
        self.begin = begin
        self.counts = Counts()
        self.waiting: list[Item] = []
        self.computing: set[Item] = set()
        self.busy = 0  # workers
        self.closed = False
        self.changed = threading.Condition()
        self.turns = threading.Semaphore(TURNS)
        self.turn = threading.local()
        self.threads = [
            threading.Thread(target=self.work, name=f"manyheads-{number}", daemon=True) for number in range(workers)
        ]
        for thread in self.threads:
            thread.start()

    def results(self, items: Sequence[Item]) -> list[Any]:
        """Have items of one request computed; waits for all of them.

        Raises:
            Stopped: the request was stopped.
            Whatever the group raised for the first that failed.
        """
        for item in items:
            item.ticket.keep([item.future])
        with self.changed:
            if self.closed:
                raise Stopped
            self.waiting += items
            self.changed.notify_all()
        if not getattr(self.turn, "taken", False):
            return [item.future.result() for item in items]
        self.turns.release()
        try:
            return [item.future.result() for item in items]
        finally:
            self.turns.acquire()

    @contextmanager
    def taking_turns(self) -> Iterator[None]:
        """While open, and not waiting for results, this thread is one of a few that work.

        Many threads that are woken at once would hold the interpreter one after the other, and keep it from the
        workers and from the thread that talks to clients.
        """
        with self.turns:
            self.turn.taken = True
            try:
                yield
            finally:
                self.turn.taken = False

    def close(self, seconds: float) -> None:
        """End the workers, after the step they are at; wait at most so long for each."""
        with self.changed:
            self.closed = True
            left = [*self.waiting, *self.computing]
            self.waiting.clear()
            self.changed.notify_all()
        for item in left:
            item.ticket.stop()
        for thread in self.threads:
            thread.join(seconds)

    def work(self) -> None:
        """Take batches until the end."""
        self.begin()
        while batch := self.take():
            begun = monotonic()
            compute(batch)
            with self.changed:
                self.busy -= 1
                self.computing.difference_update(batch)
                self.counts.batches += 1
                self.counts.items += len(batch)
                self.counts.seconds += monotonic() - begun
                self.changed.notify_all()

    def take(self) -> list[Item]:
        """The next batch, when there is one; nothing at the end."""
        with self.changed:
            while not self.closed:
                self.waiting = [item for item in self.waiting if not item.ticket.stopped]
                if not self.waiting:
                    self.changed.wait()
                    continue
                patience = self.max_wait * (PATIENCE if self.busy else 1)
                left = self.waiting[0].since + patience - monotonic()
                if left > 0 and sum(item.size for item in self.waiting) < self.max_tokens:
                    self.changed.wait(left)
                    continue
                batch = choose(self.waiting, self.share())
                taken = set(batch)
                self.waiting = [item for item in self.waiting if item not in taken]
                self.computing |= taken
                self.busy += 1
                return batch
            return []

    def share(self) -> int:
        """Tokens of the next batch: no more than leaves something for the other workers that are idle."""
        idle = max(1, len(self.threads) - self.busy)
        total = sum(item.size for item in self.waiting)
        return min(self.max_tokens, max(FEWEST_TOKENS, -(-total // idle)))


def choose(waiting: Sequence[Item], max_tokens: int) -> list[Item]:
    """The first item and those of its group that are nearest to it in size, as many as fit into a batch."""
    first = waiting[0]
    others = sorted(
        (item for item in waiting[1:] if item.group == first.group), key=lambda item: abs(item.size - first.size)
    )
    batch, longest = [first], first.size
    for item in others:
        longest = max(longest, item.size)
        if longest * (len(batch) + 1) > max_tokens:
            break
        batch.append(item)
    return batch


def compute(batch: Sequence[Item]) -> None:
    """Compute a batch and give out its results; when it fails, compute its halves."""
    live = [item for item in batch if not item.ticket.stopped]
    if not live:
        return
    try:
        results = live[0].group.compute(
            [item.payload for item in live],
            lambda: [place for place, item in enumerate(live) if item.ticket.stopped],
        )
        for item, result in zip(live, results, strict=True):
            give(item.future, result)
        return
    except Exception as error:
        if len(live) == 1:
            give(live[0].future, error=error)
            return
    middle = len(live) // 2
    compute(live[:middle])
    compute(live[middle:])


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
