"""Compute the numbered shards of a large text with an executor, and keep the result of each.

A shard is a small value, such as some hundreds of lines. Its result is bytes, kept in a separate file until all
shards are done, so that an interrupted computation resumes with the missing shards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from bitext.errors import DataError
from bitext.executors import InlineExecutor, ShardExecutor
from bitext.files import remove_drafts, write_atomically, writing

_TRIES = 4  # most attempts for a shard whose worker process was killed
_WINDOW = 1024  # most shards submitted whose results are not yielded yet
_KEY, _SUFFIX = "key", ".shard"  # files of a folder of results


def map_shards(
    work: Callable[[Any], bytes],
    shards: Iterable[Any],
    folder: Path,
    *,
    key: str,
    executor: Executor,
) -> Iterator[bytes]:
    """Yield the results of all shards in order, and keep each in a file of a folder as soon as it is computed.

    A call with the same key resumes an interrupted one: shards with a result are not computed again. The caller
    holds a lock, so that no other process writes this folder.

    Args:
        work: computes the result of a shard; a function of a module or a `functools.partial` of one.
        shards: small values that can be pickled; read as they are needed.
        folder: folder of the results, made if it is missing.
        key: hash of everything that the results depend on. Results with another key are removed.
        executor: computes the shards; see `executors.open_executor`.

    Raises:
        DataError: the folder cannot be written, or a worker process ended repeatedly.
        BitextError: an error of `work`; if there are several, the error of the first shard in order.
    """
    _open_folder(folder, key)
    run = _ShardRun(work, folder, executor)
    try:
        yield from run.results(enumerate(shards))
    finally:
        for future in run.running:
            future.cancel()


class _ShardRun:
    """The state of one call of `map_shards`.

    Attributes:
        running: number and value of each shard that is computed or waits for a worker, by its future.
        failed: the error of each shard that failed.
        tries: number of attempts for each shard without a result.
        suspects: shards that may have ended their worker process.
    """

    def __init__(self, work: Callable[[Any], bytes], folder: Path, executor: Executor) -> None:
        self.work = work
        self.folder = folder
        self.executor = executor
        self.running: dict[Future[bytes], tuple[int, Any]] = {}
        self.failed: dict[int, Exception] = {}
        self.tries: dict[int, int] = {}
        self.suspects: deque[tuple[int, Any]] = deque()

    def path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{_SUFFIX}"

    def limit(self) -> int:
        """Return how many shards are submitted at once: two for each worker, at least four."""
        if isinstance(self.executor, InlineExecutor):
            return 1  # a result is kept before the next shard is begun
        workers = self.executor.count() if isinstance(self.executor, ShardExecutor) else 1
        return max(4, 2 * workers)

    def results(self, shards: Iterator[tuple[int, Any]]) -> Iterator[bytes]:
        waiting: deque[int] = deque()  # numbers of the shards whose result is not yielded yet
        more = True
        while True:
            limit = self.limit()
            while (
                more
                and not self.failed
                and not self.suspects
                and len(self.running) < limit
                and len(waiting) < _WINDOW
            ):
                shard = next(shards, None)
                more = shard is not None
                if shard is not None:
                    waiting.append(shard[0])
                    self.begin(*shard)
            if not waiting:
                return
            while waiting[0] in self.tries:
                self.collect()
            number = waiting.popleft()
            if number in self.failed:
                raise self.failed[number]
            yield self.path(number).read_bytes()

    def begin(self, number: int, shard: Any) -> None:
        """Submit a shard, unless its result is kept."""
        if self.path(number).exists():
            return
        self.tries[number] = 0
        self.submit(number, shard)

    def submit(self, number: int, shard: Any) -> None:
        self.tries[number] += 1
        self.running[self.executor.submit(self.work, shard)] = (number, shard)

    def collect(self) -> None:
        """Wait until a shard is done, and keep the results of all finished shards.

        If a worker process is killed, all others of its executor end, and their shards are submitted again. A shard
        that fails twice in this way is computed alone, to find the shard that kills its worker.
        """
        retried = self.executor.retried if isinstance(self.executor, ShardExecutor) else ()
        if not self.running:
            self.submit(*self.suspects.popleft())
        for future in wait(self.running, return_when=FIRST_COMPLETED).done:
            number, shard = self.running.pop(future)
            error = self.error_of(future, number)
            if (isinstance(error, BrokenExecutor) and self.tries[number] == 1) or (
                isinstance(error, retried) and self.tries[number] < _TRIES
            ):
                self.submit(number, shard)
            elif isinstance(error, BrokenExecutor):
                self.suspects.append((number, shard))
            else:
                del self.tries[number]
                self.keep(number, future, error)

    def keep(self, number: int, future: Future[bytes], error: Exception | None) -> None:
        if error is not None:
            self.failed[number] = error
            return
        with writing(self.path(number)):
            write_atomically(self.path(number), future.result())

    def error_of(self, future: Future[bytes], number: int) -> Exception | None:
        """Return the error of a finished task, with a clear message if its workers or its scheduler were lost."""
        name = self.executor.name if isinstance(self.executor, ShardExecutor) else "the executor"
        lost = self.executor.lost if isinstance(self.executor, ShardExecutor) else ()
        try:
            error = future.exception()
        except CancelledError:  # cancelled by the scheduler, not by this process
            return DataError(
                f"The connection to {name} was lost at shard {number}. The finished shards are kept in "
                f"{self.folder}: give the same command again when it is back."
            )
        if isinstance(error, lost) or (isinstance(error, BrokenExecutor) and self.tries[number] == _TRIES):
            return DataError(
                f"Shard {number} has ended the process of its worker on {name} {_TRIES} times, most often because "
                f"memory ran out. The finished shards are kept in {self.folder}: give the same command again, with "
                "fewer workers on a machine or more memory for each."
            )
        assert error is None or isinstance(error, Exception)
        return error


def _open_folder(folder: Path, key: str) -> None:
    """Make a folder of results, and remove drafts and the results of another key."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        remove_drafts(folder)
        if not _has_key(folder, key):
            _remove_results(folder)
            write_atomically(folder / _KEY, key.encode())


def _has_key(folder: Path, key: str) -> bool:
    try:
        return (folder / _KEY).read_text("utf-8") == key
    except (OSError, ValueError):
        return False


def _remove_results(folder: Path) -> None:
    (folder / _KEY).unlink(missing_ok=True)  # first: results without a key are not used
    for path in folder.glob(f"*{_SUFFIX}"):
        path.unlink()


def remove_shards(folder: Path) -> None:
    """Remove a folder of results that are not needed any more."""
    if folder.is_dir():
        _remove_results(folder)
        with suppress(OSError):  # it holds other files
            folder.rmdir()
