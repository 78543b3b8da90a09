"""Dynamic and continuous batching of items from many requests.

Requests put items into a queue; workers (threads) take the item that has waited longest together with the items of
its group that are nearest to it in size, up to a token budget, padding included. Groups that compute step by step
let further items join between two steps. An item's result does not depend on the rest of its batch: groups
guarantee this for their computation, and where a batch fails, its halves are computed, so that an item that cannot
be computed fails alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from manyheads.serving.queue_items import (
    BatchGroup,
    ContinuousBatch,
    ContinuousBatchGroup,
    QueueItem,
    RequestCancelled,
    set_result,
)

_REQUEST_SLOTS = 2  # threads of requests that work at a time; the others wait for results, or for a slot
_MIN_BATCH_TOKENS = 256  # smallest budget of a batch that is split so that idle workers get items too


@dataclass
class _Counts:
    """Totals since the start: batches, items in them, and seconds of computation, added up over the workers."""

    batches: int = 0
    items: int = 0
    seconds: float = 0.0


class Batcher:
    """A queue of items and the worker threads that compute them.

    Args:
        workers: number of worker threads.
        max_tokens: token budget of a batch, padding included; an item that is larger is a batch of its own.
        max_wait: seconds that an item waits for others while a worker is free.
        on_worker_start: called first in each worker thread.
    """

    def __init__(
        self,
        *,
        workers: int,
        max_tokens: int,
        max_wait: float,
        on_worker_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.max_tokens = max_tokens
        self.max_wait = max_wait
        self.on_worker_start = on_worker_start
        self.counts = _Counts()
        self.waiting: list[QueueItem] = []
        self.computing: set[QueueItem] = set()
        self.busy = 0  # number of workers that compute
        self.closed = False
        self.changed = threading.Condition()
        self.slots = threading.Semaphore(_REQUEST_SLOTS)
        self.slot = threading.local()
        self.threads = [
            threading.Thread(target=self.run_worker, name=f"manyheads-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self.threads:
            thread.start()

    def compute_all(self, items: Sequence[QueueItem]) -> list[Any]:
        """Put the items of one request into the queue and wait for all results.

        Raises:
            RequestCancelled: the request was cancelled.
            Exception: the error of the first item that failed.
        """
        for item in items:
            item.handle.attach([item.future])
        with self.changed:
            if self.closed:
                raise RequestCancelled
            self.waiting += items
            self.changed.notify_all()
        if not getattr(self.slot, "taken", False):
            return [item.future.result() for item in items]
        self.slots.release()
        try:
            return [item.future.result() for item in items]
        finally:
            self.slots.acquire()

    @contextmanager
    def request_slot(self) -> Iterator[None]:
        """Limit how many threads of requests run at a time; `compute_all` gives the slot back while it waits.

        Many threads that are woken at once would hold the interpreter lock one after the other, and keep it from
        the workers and from the event loop.
        """
        with self.slots:
            self.slot.taken = True
            try:
                yield
            finally:
                self.slot.taken = False

    def close(self, seconds: float) -> None:
        """Cancel all items and end the workers after their current step.

        Args:
            seconds: longest time to wait for each worker.
        """
        with self.changed:
            self.closed = True
            unfinished = [*self.waiting, *self.computing]
            self.waiting.clear()
            self.changed.notify_all()
        for item in unfinished:
            item.handle.cancel()
        for thread in self.threads:
            thread.join(seconds)

    def run_worker(self) -> None:
        """Compute batches until the batcher is closed."""
        self.on_worker_start()
        while batch := self.take_batch():
            started = monotonic()
            if isinstance(batch[0].group, ContinuousBatchGroup):
                batch = self.compute_continuously(batch[0].group, batch)
            else:
                _compute(batch)
            with self.changed:
                self.busy -= 1
                self.computing.difference_update(batch)
                self.counts.seconds += monotonic() - started
                self.changed.notify_all()

    def compute_continuously(self, group: ContinuousBatchGroup, batch: list[QueueItem]) -> list[QueueItem]:
        """Compute a batch and the items that join it, until all have ended.

        After an error, all unfinished items are computed as one batch, so that only an item that cannot be computed
        gets the error.

        Returns:
            The items that are still computed: none unless there was an error.
        """
        unfinished = [*batch]
        try:
            running = group.begin()
            while batch or running.batches:
                if batch:
                    _add_batch(running, batch)
                running.step()
                # Check each future once: a request can be cancelled between two checks.
                ended = {item for item in unfinished if item.future.done()}
                unfinished = [item for item in unfinished if item not in ended]
                batch = self.take_joining(group, running, unfinished, ended)
                unfinished += batch
        except Exception:  # `_compute` raises it again, and sets it as the error of the item that caused it
            _compute(unfinished)
        return unfinished

    def take_joining(
        self,
        group: BatchGroup,
        running: ContinuousBatch,
        unfinished: Sequence[QueueItem],
        ended: Set[QueueItem],
    ) -> list[QueueItem]:
        """Return the items that join a worker's unfinished ones; an empty list if none should.

        No item joins as long as another worker is free, or when an item of another group has waited longer; items
        are shared out evenly among the workers.
        """
        with self.changed:
            self.computing.difference_update(ended)
            self.drop_cancelled()
            if self.closed or not self.waiting or self.busy < len(self.threads) or running.full:
                return []
            share = -(-(len(self.computing) + len(self.waiting)) // len(self.threads)) - len(unfinished)
            budget = self.max_tokens - sum(item.size for item in unfinished)
            if self.waiting[0].group != group or share < 1 or self.waiting[0].size > budget:
                return []
            return self.begin_batch(_choose_batch(self.waiting, budget)[:share])

    def take_batch(self) -> list[QueueItem]:
        """Wait for the next batch and return it; an empty list once the batcher is closed."""
        with self.changed:
            while not self.closed:
                self.drop_cancelled()
                if not self.waiting:
                    self.changed.wait()
                    continue
                remaining = self.waiting[0].since + self.max_wait - monotonic()
                if remaining > 0 and sum(item.size for item in self.waiting) < self.max_tokens:
                    self.changed.wait(remaining)
                    continue
                self.busy += 1
                return self.begin_batch(_choose_batch(self.waiting, self.token_budget()))
            return []

    def drop_cancelled(self) -> None:
        """Remove items of cancelled requests from the queue."""
        self.waiting = [item for item in self.waiting if not item.handle.cancelled]

    def begin_batch(self, batch: list[QueueItem]) -> list[QueueItem]:
        """Move a batch from the queue to the computing items, count it, and return it."""
        taken = set(batch)
        self.waiting = [item for item in self.waiting if item not in taken]
        self.computing |= taken
        self.counts.batches += 1
        self.counts.items += len(batch)
        return batch

    def token_budget(self) -> int:
        """Return the budget of the next batch in tokens: small enough to leave items for other idle workers."""
        idle = len(self.threads) - self.busy + 1  # this worker among them
        total = sum(item.size for item in self.waiting)
        return min(self.max_tokens, max(_MIN_BATCH_TOKENS, -(-total // idle)))


def _choose_batch(waiting: Sequence[QueueItem], max_tokens: int) -> list[QueueItem]:
    """Return the first item and the items of its group nearest to it in size, as many as the budget allows."""
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


def _compute(batch: Sequence[QueueItem]) -> None:
    """Compute a batch and set its results; where it fails, compute its halves."""
    live = [item for item in batch if not item.handle.cancelled]
    if not live:
        return
    try:
        results = live[0].group.compute(
            [item.payload for item in live],
            lambda: [index for index, item in enumerate(live) if item.handle.cancelled],
        )
        for item, result in zip(live, results, strict=True):
            set_result(item.future, result)
        return
    except Exception as error:
        if len(live) == 1:
            set_result(live[0].future, error=error)
            return
    middle = len(live) // 2
    _compute(live[:middle])
    _compute(live[middle:])


def _add_batch(running: ContinuousBatch, batch: Sequence[QueueItem]) -> None:
    """Add a batch to a running one; its results are set as soon as they are known."""
    running.add(
        [item.payload for item in batch],
        lambda: [index for index, item in enumerate(batch) if item.handle.cancelled],
        lambda index, result: set_result(batch[index].future, result),
    )
