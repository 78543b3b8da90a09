"""Real faults of disks and processes for tests: files that must not grow, and a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process by a signal")


@contextmanager
def full_disk(size: int = 0) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes, as on a disk that is full then."""
    resource = pytest.importorskip("resource", reason="no limits of file sizes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails, and the process stays
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def run_killed(program: str, *arguments: object) -> None:
    """Run a Python program that calls `kill()` at some time, which ends it as `kill -9` does."""
    kill = "import os, signal\ndef kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
    command = [sys.executable, "-c", kill + program, *map(str, arguments)]
    done = subprocess.run(command, check=False, env=os.environ, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def kill_command(*words: object, at: str) -> None:
    """Run a command of manyheads, and kill it when it is about to rename a draft to a path that ends in `at`."""
    program = """
import os, sys
from manyheads.cli.main import run
replace = os.replace
os.replace = lambda draft, path: kill() if str(path).endswith(sys.argv[1]) else replace(draft, path)
sys.exit(run(sys.argv[2:]))
"""
    run_killed(program, at, *words)
