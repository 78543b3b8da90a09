"""How many threads the demo starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from manyheads.runs.demo import useful_threads


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep so many processes busy while open."""
    with ExitStack() as stack:
        for _ in range(count):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(busy.kill)
        yield


@pytest.mark.slow
def test_beside_busy_programs_it_starts_fewer_threads() -> None:
    cores = os.cpu_count() or 1
    code = "from manyheads.runs.demo import useful_threads; print(flush=True); input(); print(useful_threads(8))"
    environment = os.environ | {"OMP_NUM_THREADS": "8"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"  # all is imported, at full speed
        with busy_processes(4 * cores):
            printed, _ = process.communicate("now\n")
    assert 1 <= int(printed) < 8


def test_it_never_starts_more_than_allowed() -> None:
    assert useful_threads(1, seconds=0.01) == 1
