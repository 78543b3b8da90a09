"""Threads: parallel jobs in order and with a share each; torch has one thread while the C code has all."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch
from tests.inference.translation.test_translator import assert_same, lines, make_translator

from manyheads.inference import threads
from manyheads.inference.native.build import library
from manyheads.inference.native.model import NativeModel
from manyheads.inference.threads import (
    _available_cores,
    limit_threads,
    map_in_threads,
    native_threads,
    num_threads,
    threads_for_native,
)
from manyheads.search.options import SearchOptions


@pytest.fixture(autouse=True)
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def test_results_are_in_the_order_of_the_jobs() -> None:
    """Let the first jobs take longest."""

    def work(job: int) -> int:
        time.sleep(0.02 * (5 - job))
        return job * job

    assert map_in_threads(work, range(5), 3) == [0, 1, 4, 9, 16]


def test_workers_run_at_the_same_time_and_divide_the_threads() -> None:
    together, threads = threading.Barrier(2), []

    def work(_: int) -> None:
        together.wait(timeout=20)  # passes only when both workers wait
        threads.append(torch.get_num_threads())

    map_in_threads(work, range(2), 2)
    assert threads == [2, 2]


def test_the_number_of_threads_is_restored_also_for_new_threads() -> None:
    map_in_threads(lambda _: torch.ones(64, 64) @ torch.ones(64, 64), range(4), 4)
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [torch.get_num_threads(), *found] == [4, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_of_a_job_is_raised_and_waiting_jobs_are_dropped(workers) -> None:
    begun = []

    def work(job: int) -> None:
        begun.append(job)
        time.sleep(0.01)
        if job == 1:
            raise FloatingPointError("NaN")

    with pytest.raises(FloatingPointError, match="NaN"):
        map_in_threads(work, range(100), workers)
    assert len(begun) < 20
    assert torch.get_num_threads() == 4


def test_a_single_job_runs_in_the_calling_thread() -> None:
    assert map_in_threads(lambda _: threading.current_thread(), [0], 8) == [threading.current_thread()]
    assert map_in_threads(lambda job: job, [], 8) == []


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_do_not_depend_on_the_number_of_batches_in_parallel(beam_size: int) -> None:
    translator = make_translator(search={"batch_tokens": 60 * beam_size})
    torch.set_num_threads(1)
    expected = translator.translate(lines(40), beam_size=beam_size)
    for count in (2, 4):
        torch.set_num_threads(count)
        for found, right in zip(translator.translate(lines(40), beam_size=beam_size), expected, strict=True):
            assert_same(found, right)


@pytest.mark.skipif(library() is None, reason="no C compiler here")
@pytest.mark.parametrize("options", [SearchOptions(beam_size=1), SearchOptions(beam_size=4, no_repeat_ngram=3)])
def test_a_search_of_one_batch_gives_the_c_code_the_threads_of_torch(monkeypatch, options: SearchOptions) -> None:
    found = set()
    compute = NativeModel.beam_steps

    def record(*arguments: object) -> object:
        found.add((native_threads(), torch.get_num_threads()))
        return compute(*arguments)

    monkeypatch.setattr(NativeModel, "beam_steps", record)
    make_translator().translate(lines(1), options=options)
    assert found == {(4, 1)}
    assert torch.get_num_threads() == 4


def test_the_c_code_has_all_threads_while_torch_has_one() -> None:
    with threads_for_native():
        assert (native_threads(), torch.get_num_threads()) == (4, 1)
    assert (native_threads(), torch.get_num_threads()) == (4, 4)


def test_without_torch_a_process_uses_all_cores_and_a_thread_its_limit(monkeypatch) -> None:
    monkeypatch.setattr(threads, "_loaded_torch", lambda: None)
    assert num_threads() == _available_cores() >= 1
    found = []

    def limited() -> None:
        limit_threads(3)
        found.append(num_threads())

    thread = threading.Thread(target=limited)
    thread.start()
    thread.join()
    assert [*found, num_threads()] == [3, _available_cores()]


@pytest.mark.parametrize(("setting", "expected"), [("7", 7), ("5,2", 5)])
def test_the_variable_of_openmp_sets_the_number_of_threads(setting: str, expected: int, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert _available_cores.__wrapped__() == expected


@pytest.mark.parametrize("setting", ["", "0", "many"])
def test_the_number_of_cores_is_that_of_the_processor_where_nothing_sets_it(setting: str, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert 1 <= _available_cores.__wrapped__() <= (os.cpu_count() or 1)
