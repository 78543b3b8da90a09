"""The number of threads of the C code, whether or not torch is imported."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from manyheads.processors import available_processors

_MAX_THREADS = 8  # more threads would wait for each other longer than they compute
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class _ThreadLimit(threading.local):
    """The number of threads that calls from this thread may use; 0 is the default of the process."""

    count = 0


_limit = _ThreadLimit()


def _loaded_torch() -> Any:
    """Return the module torch if the process has imported it, else None."""
    module = sys.modules.get("torch")
    return module if hasattr(module, "set_num_threads") else None


def num_threads() -> int:
    """Return the number of threads that a call from this thread may use: torch's number where torch is loaded."""
    if _limit.count:
        return _limit.count
    torch = _loaded_torch()
    return _available_cores() if torch is None else int(torch.get_num_threads())


def native_threads() -> int:
    """Return the number of threads of a call of the C code from this thread."""
    return min(num_threads(), _MAX_THREADS)


def limit_threads(count: int) -> None:
    """Set the number of threads of later calls from this thread, for the C code and for torch if it is loaded."""
    _limit.count = count
    if (torch := _loaded_torch()) is not None:
        torch.set_num_threads(count)


@functools.cache
def _available_cores() -> int:
    """Return OMP_NUM_THREADS, or the number of cores that this process may use, hyper-threads counted once."""
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if setting.isdecimal() and int(setting):
        return int(setting)
    if not hasattr(os, "sched_getaffinity"):
        return available_processors()
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            cores.add(Path(_SIBLINGS.format(cpu)).read_text())
        except OSError:
            cores.add(str(cpu))
    return min(len(cores), available_processors())


@contextmanager
def threads_for_native() -> Iterator[None]:
    """Give the C code all threads of torch, and torch one thread, for calls from this thread.

    The operations of torch between two steps are small, and its threads would then spin for milliseconds on the
    cores that the threads of the C code need.
    """
    previous, count, torch = _limit.count, num_threads(), _loaded_torch()
    _limit.count = count
    if torch is not None:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        _limit.count = previous
        if torch is not None:
            torch.set_num_threads(count)


def map_in_threads(work: Callable[[_Job], _Result], jobs: Sequence[_Job], workers: int) -> list[_Result]:
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
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and not needed for one line

    threads = num_threads()
    try:
        share = max(1, threads // workers)
        with ThreadPoolExecutor(workers, "manyheads", initializer=limit_threads, initargs=(share,)) as pool:
            return list(pool.map(work, jobs))
    finally:
        if (torch := _loaded_torch()) is not None:
            torch.set_num_threads(threads)  # per thread, but new threads inherit the number that was set last
