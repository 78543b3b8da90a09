"""Parallel decoding of batches, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["map_in_threads"]

Job = TypeVar("Job")
Result = TypeVar("Result")


def map_in_threads(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> list[Result]:
    """Run `work` on all jobs in worker threads; return the results in the order of the jobs.

    The workers share the threads of torch. Threads within one small operation gain little, because they wait for
    each other at its end; independent jobs do not wait. torch releases the interpreter lock while it computes.

    Args:
        work: called in the worker threads, where thread-local modes such as `inference_mode` are off.
        jobs: a free worker takes the next job.
        workers: maximum number of threads; with 1 the calling thread does all work.

    Raises:
        Exception: the first exception of `work`; jobs that no worker has taken yet are skipped.
    """
    workers = min(workers, len(jobs))
    if workers <= 1:
        return [work(job) for job in jobs]
    threads = torch.get_num_threads()

    def share_threads() -> None:
        torch.set_num_threads(max(1, threads // workers))

    try:
        with ThreadPoolExecutor(workers, thread_name_prefix="manyheads", initializer=share_threads) as pool:
            return list(pool.map(work, jobs))
    finally:
        torch.set_num_threads(threads)  # per thread, but new threads inherit the number that was set last
