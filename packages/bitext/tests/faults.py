"""Faults of disks and processes for tests: files that must not grow, calls that fail, a process that is killed."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bitext.errors import BitextError

needs_signals = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process by a signal")


_OPERATIONS = ("replace", "rename", "fsync", "mkdir", "rmdir", "unlink", "open")


class PowerCutError(BaseException):
    """Ends a test's function at once, as `kill -9` ends a process."""


FAILURES = (OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt(), PowerCutError())


@contextmanager
def failing_at(number: int, failure: BaseException) -> Iterator[list[str]]:
    """Let the call of this number, of all `_OPERATIONS`, raise a failure; after a power cut all later ones too."""
    called: list[str] = []

    def failing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            called.append(name)
            if len(called) == number or (len(called) > number and isinstance(failure, PowerCutError)):
                raise failure
            return function(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in _OPERATIONS:
            patch.setattr(os, name, failing(name, getattr(os, name)))
        yield called


def each_failure(make: Callable[[], Callable[[], None]], failure: BaseException) -> Iterator[int]:
    """Run a function with a failure at its first file operation, at its second, and so on; yield the numbers."""
    for number in itertools.count(1):
        function = make()
        with failing_at(number, failure) as called:
            try:
                function()
            except (type(failure), BitextError):
                pass
        yield number
        if len(called) < number:
            assert number > 3
            return


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
