"""The thread pool of the C code: every share is done once, and one thread works alone where that is faster."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.inference.native import build

COMPILER = next(filter(shutil.which, build._COMPILERS), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")

SOURCE = """
#include "thread_pool.h"

typedef struct { int64_t total, unit; int32_t *done; } Task;

static void mark(Worker worker, const void *argument) {
    const Task *task = argument;
    for (int round = 0; round < 3; round++) {
        const Range own = share(worker, task->total, task->unit);
        for (int64_t i = own.first; i < own.last; i++) task->done[i]++;
        barrier(worker);
    }
}

void mark_all(int threads, int64_t total, int64_t unit, int32_t *done) {
    const Task task = {total, unit, done};
    parallel_run(threads, mark, &task);
}

static int jobs_alone;

static void small_steps(Worker worker, const void *argument) {
    (void)argument;
    jobs_alone += worker.count == 1;
    for (int round = 0; round < 40; round++) {
        for (volatile int i = 0; i < 2000 / worker.count; i++) {}
        barrier(worker);
    }
}

int count_pool_threads(void) { return spawned; }

int count_jobs_alone(int threads, int jobs) {
    jobs_alone = 0;
    for (int i = 0; i < jobs; i++) parallel_run(threads, small_steps, 0);
    return jobs_alone;
}
"""
ON_ONE_CORE = """
import ctypes, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
code = ctypes.CDLL(sys.argv[1])
print(code.count_jobs_alone(2, 1000))
"""
IDLE = """
import ctypes, sys, threading, time
code = ctypes.CDLL(sys.argv[1])

def call():
    for job in range(400):
        done = (ctypes.c_int32 * 97)()
        code.mark_all(7, ctypes.c_int64(97), ctypes.c_int64(2), done)
        assert list(done) == [3] * 97, job
    finished.append(True)

finished = []
callers = [threading.Thread(target=call) for _ in range(3)]
for caller in callers: caller.start()
for caller in callers: caller.join()
assert len(finished) == 3
time.sleep(0.2)
before = time.process_time()
time.sleep(1)
print(code.count_pool_threads(), time.process_time() - before)
"""
WAITING = {"futex": (), "condition variables": ("-DNO_FUTEX",)}  # the ways in which threads wait for each other


@pytest.fixture(scope="module", params=WAITING.values(), ids=WAITING.keys())
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the thread pool with the test functions, and return the path of the library."""
    assert COMPILER is not None
    source = tmp_path_factory.mktemp("pool") / "pool.c"
    source.write_text(SOURCE, encoding="utf-8")
    folder = Path(build.__file__).parent
    options = ["-O2", "-std=gnu11", "-fPIC", "-shared", "-pthread", *request.param, f"-I{folder}"]
    subprocess.run([COMPILER, *options, str(source), "-o", str(source.with_suffix(".so"))], check=True)
    return source.with_suffix(".so")


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("total", [0, 1, 5, 97])
def test_every_share_of_a_job_is_done_once_between_two_barriers(library: Path, threads: int, total: int) -> None:
    code = ctypes.CDLL(str(library))
    for job in range(1, 40):  # long enough to try one thread and the whole pool
        done = (ctypes.c_int32 * (total + 1))()
        code.mark_all(threads, ctypes.c_int64(total), ctypes.c_int64(2), done)
        assert list(done) == [3] * total + [0], job


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the processor affinity cannot be set here")
def test_one_thread_does_the_jobs_where_a_second_thread_has_no_core(library: Path) -> None:
    command = [sys.executable, "-c", ON_ONE_CORE, str(library)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    assert int(done.stdout) > 500, "of 1,000"


def test_threads_that_wait_use_no_processor_time(library: Path) -> None:
    """Measure the processor time after jobs from three concurrent callers, which check their shares."""
    command = [sys.executable, "-c", IDLE, str(library)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    threads, seconds = done.stdout.split()
    assert int(threads) == 6
    assert float(seconds) < 0.05, "of a second; threads that spin use all that they get"
