"""Batches made ahead, while the model computes with the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["made_ahead"]

Task = TypeVar("Task")
Result = TypeVar("Result")
AHEAD = 2  # results a thread may be ahead


def made_ahead(make: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """`make` of each task, in order, computed by threads a little ahead; 0 threads compute each when it is due.

    What `make` raises is raised when its result is due. Leaving the loop early waits for what is being made.
    """
    if threads == 0:
        yield from map(make, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, "batches") as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(make, task))
                if len(waiting) > AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
