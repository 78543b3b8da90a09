"""Tasks are computed in this process, in processes of one thread each, or on a Dask cluster."""

from __future__ import annotations

import os
import sys

import pytest

from bitext.errors import MissingExtraError, UsageError
from bitext.executors import InlineExecutor, open_executor
from shard_work import process_of


def test_without_arguments_tasks_are_computed_in_this_process() -> None:
    with open_executor() as executor:
        assert isinstance(executor, InlineExecutor)
        assert executor.submit(process_of, "X").result()[0] == os.getpid()


def test_the_error_of_a_task_in_this_process_is_raised() -> None:
    future = InlineExecutor().submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        future.result()


def test_processes_compute_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with open_executor(workers=1) as executor:
        process, threads = executor.submit(process_of, "OMP_NUM_THREADS").result()
    assert process != os.getpid()
    assert threads == "1"


def test_an_error_without_dask_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"bitext\[cluster\]"), open_executor("tcp://127.0.0.1:1"):
        pass


@pytest.mark.parametrize(
    ("address", "workers", "message"),
    [
        ("tcp://127.0.0.1:1", 2, "exclude each other"),
        ("cluster", None, "not the address"),
        ("tcp://host", None, "not the address"),
        ("tcp://127.0.0.1:1", None, r"No Dask scheduler answers at tcp://127\.0\.0\.1:1 "),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    address: str, workers: int | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitext.executors._CONNECT", 0.2)
    with pytest.raises(UsageError, match=message), open_executor(address, workers):
        pass
