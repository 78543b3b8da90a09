"""Batches of sentences side by side, each computed by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["side_by_side"]

Job = TypeVar("Job")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> list[Result]:
    """The results of all jobs in their order; the threads that torch computes with are shared out among workers.

    Small operations gain little from a second thread, and wait for each other at the end of each; jobs do not.
    While one worker's operation computes, the others go on: torch lets go of the interpreter meanwhile.

    Args:
        work: is called in other threads, where modes of the calling one, such as `inference_mode`, are not on.
        jobs: one after the other is taken by the next worker that is free.
        workers: at most so many; 1 is the calling thread itself.

    Raises:
        Whatever `work` raises first; jobs that nobody has taken are left undone.
    """
    workers = min(workers, len(jobs))
    if workers <= 1:
        return [work(job) for job in jobs]
    threads = torch.get_num_threads()

    def begin() -> None:
        torch.set_num_threads(max(1, threads // workers))

    try:
        with ThreadPoolExecutor(workers, thread_name_prefix="manyheads", initializer=begin) as pool:
            return list(pool.map(work, jobs))
    finally:
        torch.set_num_threads(threads)  # the number is each thread's own, but new ones take the last that was set
