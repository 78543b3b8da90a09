"""The number of threads of the C code, whether or not torch is imported."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["limit_threads", "map_in_threads", "native_threads", "num_threads", "threads_for_native"]

MAX_THREADS = 8  # more threads would wait for each other longer than they compute
SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"

Job = TypeVar("Job")
Result = TypeVar("Result")


class ThreadLimit(threading.local):
    """The number of threads that calls from this thread may use; 0 is the default of the process."""

    count = 0


limit = ThreadLimit()


def loaded_torch() -> Any:
    """Return the module torch if the process has imported it, else None."""
    module = sys.modules.get("torch")
    return module if hasattr(module, "set_num_threads") else None


def num_threads() -> int:
    """Return the number of threads that a call from this thread may use: torch's number where torch is loaded."""
    if limit.count:
        return limit.count
    torch = loaded_torch()
    return available_cores() if torch is None else int(torch.get_num_threads())


def native_threads() -> int:
    """Return the number of threads of a call of the C code from this thread."""
    return min(num_threads(), MAX_THREADS)


def limit_threads(count: int) -> None:
    """Set the number of threads of later calls from this thread, for the C code and for torch if it is loaded."""
    limit.count = count
    if (torch := loaded_torch()) is not None:
        torch.set_num_threads(count)


@functools.cache
def available_cores() -> int:
    """Return OMP_NUM_THREADS, or the number of cores that this process may use, hyper-threads counted once."""
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if setting.isdecimal() and int(setting):
        return int(setting)
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            cores.add(Path(SIBLINGS.format(cpu)).read_text())
        except OSError:
            cores.add(str(cpu))
    return len(cores)


@contextmanager
def threads_for_native() -> Iterator[None]:
    """Give the C code all threads of torch, and torch one thread, for calls from this thread.

    The operations of torch between two steps are small, and its threads would then spin for milliseconds on the
    cores that the threads of the C code need.
    """
    previous, count, torch = limit.count, num_threads(), loaded_torch()
    limit.count = count
    if torch is not None:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        limit.count = previous
        if torch is not None:
            torch.set_num_threads(count)


def map_in_threads(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> list[Result]:
    """Run `work` on all jobs in worker threads; return the results in the order of the jobs.

    The workers share the threads of the caller. Threads within one small operation gain little, because they wait
    for each other at its end; independent jobs do not wait. torch and the C code release the interpreter lock while
    they compute.

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
    threads = num_threads()
    try:
        share = max(1, threads // workers)
        with ThreadPoolExecutor(workers, "manyheads", initializer=limit_threads, initargs=(share,)) as pool:
            return list(pool.map(work, jobs))
    finally:
        if (torch := loaded_torch()) is not None:
            torch.set_num_threads(threads)  # per thread, but new threads inherit the number that was set last
