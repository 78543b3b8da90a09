"""Compute the shards of a large text in this process, in processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from bitext.errors import UsageError, require

_CONNECT = 10  # seconds in which a scheduler must answer
_ADDRESS = re.compile(r"(\w+://)?\S+:\d+")


@dataclass(eq=False)
class ShardExecutor(Executor):
    """An executor that knows its number of workers, and is opened again after its worker processes were killed.

    Attributes:
        reopen: opens the executor that computes.
        count: returns the number of workers, which may change.
        lost: exceptions of a task whose workers were killed repeatedly, although the executor retried it.
        name: name of the executor in messages.
        retried: exceptions that the executor may raise if it lost a result; the task is then computed again.
    """

    reopen: Callable[[], Executor]
    count: Callable[[], int]
    lost: tuple[type[Exception], ...] = ()
    name: str = "this machine"
    retried: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        self.executor = self.reopen()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call; see `concurrent.futures.Executor.submit`."""
        try:
            return self.executor.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            self.executor.shutdown()
            self.executor = self.reopen()
            return self.executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Release the workers; see `concurrent.futures.Executor.shutdown`."""
        if isinstance(self.executor, ProcessPoolExecutor):
            self.executor.shutdown(wait, cancel_futures=cancel_futures)
        else:
            self.executor.shutdown(wait)


class InlineExecutor(Executor):
    """Compute each task in the calling thread when it is submitted: one process, with all its threads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Compute a call; see `concurrent.futures.Executor.submit`."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def open_executor(scheduler: str | None = None, workers: int | None = None) -> Iterator[Executor]:
    """Open this process, processes of this machine, or the workers of a Dask scheduler.

    When the block is left by an exception, the processes are ended and the tasks on the cluster are cancelled.

    Args:
        scheduler: address of the Dask scheduler, such as tcp://HOST:8786.
        workers: number of processes of this machine, each with one thread. Without both arguments, tasks are
            computed in this process, with all its threads.

    Raises:
        UsageError: no scheduler answers at the address, or both arguments are given.
        MissingExtraError: the extra `cluster` is not installed.
    """
    if scheduler is not None and workers is not None:
        raise UsageError("--workers and --scheduler exclude each other: a Dask cluster has its own workers.")
    if scheduler is not None:
        with _dask_executor(scheduler) as executor:
            yield executor
    elif workers is not None:
        with _local_executor(workers) as executor:
            yield executor
    else:
        yield InlineExecutor()


@contextmanager
def _local_executor(workers: int) -> Iterator[ShardExecutor]:
    """Open processes of this machine; see `open_executor`."""
    context = multiprocessing.get_context("spawn")  # threads of torch do not survive a fork
    stop_reader, stop_writer = context.Pipe(duplex=False)
    reopen = partial(ProcessPoolExecutor, workers, context, _prepare_worker, (stop_reader,))
    executor = ShardExecutor(reopen, lambda: workers)
    try:
        yield executor
    except BaseException:
        stop_writer.close()  # ends the processes, whatever they compute
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        stop_writer.close()
        stop_reader.close()


def _prepare_worker(stop: Connection) -> None:
    """Set up a worker process: it uses one thread, leaves Ctrl-C to the parent, and ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"  # read by the libraries that the first shard imports
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()


def _end_with_parent(stop: Connection) -> None:
    """Wait until the parent closes the other end of a pipe or is killed, then end this process."""
    with suppress(EOFError, OSError):
        stop.recv_bytes()
    os._exit(1)


@contextmanager
def _dask_executor(scheduler: str) -> Iterator[ShardExecutor]:
    """Connect to a Dask scheduler; see `open_executor`."""
    distributed = require("distributed", extra="cluster", purpose="--scheduler")
    if not _ADDRESS.fullmatch(scheduler):
        raise UsageError(f"{scheduler} is not the address of a Dask scheduler, such as tcp://HOST:8786.")
    for name in ("distributed", "distributed.client"):  # their errors are raised here with a clear message
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(scheduler, set_as_default=False, timeout=_CONNECT)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        raise UsageError(
            f"No Dask scheduler answers at {scheduler} ({_first_line(error)}). Start one with `dask scheduler`; it "
            "prints its address, such as tcp://HOST:8786."
        ) from error

    def count() -> int:
        try:
            return sum(client.nthreads().values())
        except OSError:
            return 0  # the scheduler is gone, which the tasks report

    reopen = partial(client.get_executor, pure=False)
    # distributed treats a result as an error, and unpacks it, if its worker is killed during the transfer
    retried = (ValueError, AttributeError)
    executor = ShardExecutor(reopen, count, (distributed.KilledWorker,), scheduler, retried)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False)  # cancels the tasks
        raise
    finally:
        client.close()


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")
