"""Where batches come from, made ahead while the model computes with the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.training.part import Part

__all__ = ["Pairs", "Updates", "prefetch", "updates_ahead"]

Pairs = NDArray[np.int64]
Task = TypeVar("Task")
Result = TypeVar("Result")
AHEAD = 2  # results a thread may be ahead


class Updates(Protocol):
    """Where batches come from; all are functions of their arguments alone."""

    def epoch(self, number: int) -> Sequence[Pairs]:
        """The pairs of each update of an epoch; every epoch has the same number of updates."""
        ...

    def batches(self, epoch: int, position: int, pairs: Pairs) -> Sequence[Part]:
        """The parts of one update that are this process's, on the CPU; at least one."""
        ...

    def heaviest(self) -> int:
        """The position in epoch 0 of the update that needs the most memory."""
        ...

    def describe(self, pairs: Pairs) -> str:
        """Where these pairs stand in the corpus, for a message."""
        ...


def updates_ahead(
    updates: Updates, epoch: int, plan: Sequence[Pairs], first: int, threads: int, device: torch.device
) -> Iterator[tuple[Pairs, Sequence[Part]]]:
    """The pairs and the parts of each update of an epoch, from the position `first` on, made ahead for a device."""

    def make(position: int) -> tuple[Pairs, Sequence[Part]]:
        parts = updates.batches(epoch, position, plan[position])
        return plan[position], [part.pinned() for part in parts] if device.type == "cuda" else parts

    return prefetch(make, range(first, len(plan)), threads)


def prefetch(make: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """`make` of each task, in order, computed by threads a little ahead; 0 threads compute each when it is due.

    What `make` raises is raised when its result is due. Leaving the loop early waits for what was begun.
    """
    if threads == 0:
        yield from map(make, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, "batches") as pool:
        for task in tasks:
            waiting.append(pool.submit(make, task))
            if len(waiting) > AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
