"""Work of many requests computed together.

Requests hand in items; workers (threads) take the one that has waited longest, and with it those of its group
that are nearest to it in size, up to a number of tokens, padding included. Groups that compute in steps let others
join between two of them. What comes out for an item does not depend on the others: groups promise that of what they
compute, and where a batch fails, its halves are tried, so that one item that cannot be computed fails alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from manyheads.serving.items import Group, Item, JoinableGroup, Running, Stopped, give

__all__ = ["Batcher", "choose"]

TURNS = 2  # threads of requests that work at a time; all others wait for results, or for their turn
FEWEST_TOKENS = 256  # of a batch that is kept small so that other workers have something to do


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
        max_wait: seconds that an item waits for others while a worker is free.
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
            if isinstance(batch[0].group, JoinableGroup):
                self.compute_in_steps(batch[0].group, batch)
            else:
                compute(batch)
            with self.changed:
                self.busy -= 1
                self.computing.difference_update(batch)
                self.counts.seconds += monotonic() - begun
                self.changed.notify_all()

    def compute_in_steps(self, group: JoinableGroup, batch: list[Item]) -> None:
        """Compute a batch, and what joins it, until nothing is left; where that fails, all of it as one batch."""
        running, left = group.begin(), list[Item]()
        while batch or running.parts:
            left += batch
            try:
                if batch:
                    add(running, batch)
                running.step()
            except Exception:
                running = group.begin()
                compute(left)
            ended = [item for item in left if item.future.done()]
            left = [item for item in left if not item.future.done()]
            batch = self.joining(group, running, left, ended)

    def joining(self, group: Group, running: Running, left: Sequence[Item], ended: Sequence[Item]) -> list[Item]:
        """What joins the items that a worker has left, if anything.

        Nothing does as long as another worker is free, or when something else has waited longer; and what is
        computed is shared out evenly among the workers.
        """
        with self.changed:
            self.computing.difference_update(ended)
            self.forget_stopped()
            if self.closed or not self.waiting or self.busy < len(self.threads) or running.full:
                return []
            share = -(-(len(self.computing) + len(self.waiting)) // len(self.threads)) - len(left)
            room = self.max_tokens - sum(item.size for item in left)
            if self.waiting[0].group != group or share < 1 or self.waiting[0].size > room:
                return []
            return self.begin_batch(choose(self.waiting, room)[:share])

    def take(self) -> list[Item]:
        """The next batch, when there is one; nothing at the end."""
        with self.changed:
            while not self.closed:
                self.forget_stopped()
                if not self.waiting:
                    self.changed.wait()
                    continue
                left = self.waiting[0].since + self.max_wait - monotonic()
                if left > 0 and sum(item.size for item in self.waiting) < self.max_tokens:
                    self.changed.wait(left)
                    continue
                self.busy += 1
                return self.begin_batch(choose(self.waiting, self.share()))
            return []

    def forget_stopped(self) -> None:
        """Take from the queue what nobody waits for any more."""
        self.waiting = [item for item in self.waiting if not item.ticket.stopped]

    def begin_batch(self, batch: list[Item]) -> list[Item]:
        """Take a batch from the queue and count it; returns it."""
        taken = set(batch)
        self.waiting = [item for item in self.waiting if item not in taken]
        self.computing |= taken
        self.counts.batches += 1
        self.counts.items += len(batch)
        return batch

    def share(self) -> int:
        """Tokens of the next batch: no more than leaves something for the other workers that are idle."""
        idle = len(self.threads) - self.busy + 1  # this worker among them
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


def add(running: Running, batch: Sequence[Item]) -> None:
    """Let a batch join, and give out its results."""
    running.add(
        [item.payload for item in batch],
        lambda: [place for place, item in enumerate(batch) if item.ticket.stopped],
        lambda place, result: give(batch[place].future, result),
    )
