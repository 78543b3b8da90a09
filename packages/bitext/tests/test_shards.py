"""Shards: results are in order and kept on disk, also if workers are killed."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError
from bitext.executors import InlineExecutor, ShardExecutor, open_executor
from bitext.shards import map_shards, remove_shards
from clusters import Cluster, wait_for
from shard_work import kill_worker_once, refuse_large, square, wait_for_file

LIMIT = 120  # seconds; only reached when a test fails


class KilledWorkerError(Exception):
    """Stands for the error of a cluster whose workers were killed."""


class RecordingInlineExecutor(InlineExecutor):
    """Compute in the calling thread, and record the submitted shards."""

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted.append(args[0])
        return super().submit(fn, *args, **kwargs)


class BreakingExecutor(InlineExecutor):
    """Break at shard 3 for good, as a pool of processes of which one is killed."""

    def __init__(self) -> None:
        self.broken = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.broken:
            raise BrokenExecutor
        if args[0] != 3:
            return super().submit(fn, *args, **kwargs)
        self.broken = True
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor())
        return future


class ManualExecutor(Executor):
    """Leave it to the test to set the results."""

    def __init__(self) -> None:
        self.futures: list[Future[bytes]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]

    def when_submitted(self, count: int, act: Callable[[], object]) -> threading.Thread:
        """Act in a thread as soon as a number of shards is submitted."""
        thread = threading.Thread(target=lambda: (wait_for(lambda: len(self.futures) == count), act()))
        thread.start()
        return thread


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_results_of_the_same_key_are_not_computed_again(results: Path) -> None:
    first = map_shards(square, range(6), results, key="a", executor=RecordingInlineExecutor())
    assert [next(first), next(first)] == [b"0", b"1"]
    first.close()
    again = RecordingInlineExecutor()
    assert list(map_shards(square, range(6), results, key="a", executor=again)) == [square(n) for n in range(6)]
    assert again.submitted == [2, 3, 4, 5]


def test_another_key_starts_again_and_leaves_other_files(results: Path) -> None:
    list(map_shards(square, range(6), results, key="a", executor=RecordingInlineExecutor()))
    (results / "notes.txt").write_text("mine")
    other = RecordingInlineExecutor()
    assert list(map_shards(square, range(2), results, key="b", executor=other)) == [b"0", b"1"]
    assert other.submitted == [0, 1]
    remove_shards(results)
    assert [path.name for path in results.iterdir()] == ["notes.txt"]


def test_a_folder_without_other_files_is_removed(results: Path) -> None:
    list(map_shards(square, range(6), results, key="a", executor=RecordingInlineExecutor()))
    remove_shards(results)
    assert not results.exists()


def test_shards_are_read_only_as_they_are_needed(results: Path) -> None:
    executor, taken = ManualExecutor(), []
    shards_read = (taken.append(number) or number for number in range(1000))
    run = map_shards(square, shards_read, results, key="a", executor=executor)
    executor.when_submitted(4, lambda: executor.futures[0].set_result(b"0"))
    assert next(run) == b"0"
    assert len(taken) <= 5


def test_finished_results_are_kept_although_an_earlier_shard_fails(results: Path) -> None:
    executor = ManualExecutor()
    run = map_shards(square, range(4), results, key="a", executor=executor)

    def finish() -> None:
        for number in (2, 1):
            executor.futures[number].set_result(square(number))
        while not all((results / f"{number:08d}.shard").exists() for number in (1, 2)):
            time.sleep(0.01)
        executor.futures[0].set_exception(KeyError("a fault of the work"))
        executor.futures[3].set_result(b"9")

    waiter = executor.when_submitted(4, finish)
    with pytest.raises(KeyError):
        next(run)
    waiter.join()
    again = RecordingInlineExecutor()
    assert list(map_shards(square, range(4), results, key="a", executor=again)) == [square(n) for n in range(4)]
    assert set(again.submitted) <= {0, 3}


def test_the_error_of_the_first_shard_in_order_is_raised(results: Path) -> None:
    manual = ManualExecutor()
    executor = ShardExecutor(partial(itemgetter(0), (manual,)), lambda: 4)  # submits two shards for each worker
    run = map_shards(refuse_large, range(8), results, key="a", executor=executor)
    manual.when_submitted(
        8, lambda: [set_result(manual.futures[number], number) for number in (7, 5, 3, 0, 1, 2, 4, 6)]
    )
    with pytest.raises(DataError, match="3 is too large"):
        list(run)
    assert (results / "00000002.shard").read_bytes() == b"4"


def set_result(future: Future[bytes], number: int) -> None:
    try:
        future.set_result(refuse_large(number))
    except DataError as error:
        future.set_exception(error)


def test_shards_of_a_killed_worker_are_computed_again_and_results_are_in_order(
    results: Path, tmp_path: Path
) -> None:
    work = partial(kill_worker_once, folder=tmp_path)
    with open_executor(workers=2) as executor:
        squares = list(map_shards(work, range(12), results, key="a", executor=executor))
    assert squares == [square(number) for number in range(12)]
    assert (tmp_path / "ended").exists()


def test_a_shard_that_always_kills_its_worker_is_named(results: Path) -> None:
    executor = ShardExecutor(BreakingExecutor, lambda: 2)
    with pytest.raises(DataError, match=r"^Shard 3 .* 4 times.*results"):
        list(map_shards(square, range(6), results, key="a", executor=executor))
    kept = {path.name for path in results.glob("*.shard")}
    assert {"00000000.shard", "00000001.shard", "00000002.shard"} <= kept


def test_a_shard_whose_workers_or_scheduler_are_lost_is_named(results: Path) -> None:
    ends: list[tuple[Callable[[Future[bytes]], object], str]] = [
        (
            lambda future: future.cancel() and future.set_running_or_notify_cancel(),
            r"The connection to tcp://x:1 was lost at shard 0\..*results",
        ),
        (lambda future: future.set_exception(KilledWorkerError()), r"^Shard 0 .* tcp://x:1 4 times.*results"),
    ]
    for end, message in ends:
        manual = ManualExecutor()
        executor = ShardExecutor(partial(itemgetter(0), (manual,)), lambda: 1, (KilledWorkerError,), "tcp://x:1")
        run = map_shards(square, range(1), results, key="a", executor=executor)
        manual.when_submitted(1, partial(lambda opened, end: end(opened.futures[0]), manual, end))
        with pytest.raises(DataError, match=message):
            next(run)


def test_a_full_disk_leaves_no_partial_shard(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = map_shards(square, range(6), results, key="a", executor=RecordingInlineExecutor())
    assert next(run) == b"0"

    def fail_with_full_disk(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail_with_full_disk)
    with pytest.raises(DataError, match=r"00000001.shard cannot be written: No space left on device"):
        next(run)
    assert sorted(path.name for path in results.iterdir()) == ["00000000.shard", "key"]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


PROGRAM = """
import os, sys, time
from pathlib import Path
from bitext.executors import open_executor
from bitext.shards import map_shards

def work(number):
    Path(sys.argv[1], f"pid-{os.getpid()}").touch()
    if number >= 2:
        time.sleep(1000)
    return b"%d" % number

if __name__ == "__main__":
    with open_executor(workers=2) as executor:
        for result in map_shards(work, range(8), Path(sys.argv[1], "results"), key="a", executor=executor):
            pass
"""


@pytest.mark.slow  # one quick test of worker processes: those of a killed worker, above
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_all_processes_and_keeps_what_is_finished(tmp_path: Path, number: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with subprocess.Popen([sys.executable, program, tmp_path], stderr=subprocess.PIPE) as process:
        wait_for(lambda: all((tmp_path / "results" / f"0000000{shard}.shard").exists() for shard in (0, 1)))
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == -number
    # At most the traceback of this program; its workers are silent. A signal that comes while an exception is being
    # handled gives a chain of two, which counts once.
    assert errors.count(b"Traceback") - errors.count(b"During handling of the above exception") <= 1
    pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    assert pids
    wait_for(lambda: not any(is_running(pid) for pid in pids))
    kept = {path.name for path in (tmp_path / "results").glob("*.shard")}
    assert kept == {"00000000.shard", "00000001.shard"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("dask"), 2) as opened:
        yield opened


@pytest.fixture
def mortal_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of which a test kills the scheduler or a worker."""
    folder = tmp_path / "dask"
    folder.mkdir()
    with Cluster(folder, 2) as opened:
        yield opened


def test_results_of_a_dask_cluster_are_those_of_local_processes(cluster: Cluster, results: Path) -> None:
    with open_executor(cluster.address) as executor:
        squares = list(map_shards(square, range(50), results, key="a", executor=executor))
        assert executor.count() == 2
    assert squares == [square(number) for number in range(50)]


@pytest.mark.slow
def test_a_cluster_that_loses_and_gains_workers_computes_every_shard(
    mortal_cluster: Cluster, results: Path, tmp_path: Path
) -> None:
    work = partial(wait_for_file, folder=tmp_path)
    with open_executor(mortal_cluster.address) as executor:
        run = map_shards(work, range(20), results, key="a", executor=executor)
        first = [next(run) for _ in range(3)]
        wait_for(lambda: len(list(tmp_path.glob("started-[4-9]-*"))) >= 2)  # both workers wait
        mortal_cluster.kill()
        mortal_cluster.add()
        (tmp_path / "go").touch()
        squares = first + list(run)
    assert squares == [square(number) for number in range(20)]
    assert len(list(results.glob("*.shard"))) == 20


def test_an_error_of_a_cluster_worker_is_raised(cluster: Cluster, results: Path) -> None:
    with open_executor(cluster.address) as executor, pytest.raises(DataError, match="3 is too large"):
        list(map_shards(refuse_large, range(8), results, key="a", executor=executor))


def test_a_result_whose_worker_is_killed_on_the_way_is_computed_again(
    cluster: Cluster, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The future of a task is reported as lost once, after its result has come, as by a kill at that moment."""
    future = pytest.importorskip("distributed").Future
    status, lost = future.status, []

    def lost_once(self: Any) -> str:
        if sys._getframe(1).f_code.co_name == "_cascade_future" and not lost:
            lost.append(self.key)
            return "lost"
        found: str = status.fget(self)
        return found

    monkeypatch.setattr(future, "status", property(lost_once))
    with open_executor(cluster.address) as executor:
        squares = list(map_shards(square, range(10), results, key="a", executor=executor))
    assert squares == [square(number) for number in range(10)]
    assert len(lost) == 1


@pytest.mark.slow
def test_a_lost_scheduler_is_one_error_without_log_records(
    mortal_cluster: Cluster, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", logged.append)
    monkeypatch.setattr(logging.getLogger("distributed.client"), "handlers", [handler])
    work = partial(wait_for_file, folder=tmp_path)
    with open_executor(mortal_cluster.address) as executor:
        run = map_shards(work, range(20), results, key="a", executor=executor)
        assert [next(run) for _ in range(4)] == [square(number) for number in range(4)]
        mortal_cluster.scheduler.kill()
        with pytest.raises(DataError, match="lost at shard"):
            next(run)
    assert (results / "00000003.shard").exists()
    assert not logged
