"""Work on shards, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from bitext.errors import DataError
from clusters import wait_for


def square(number: int) -> bytes:
    return b"%d" % number**2


def refuse_large(number: int) -> bytes:
    if number >= 3:
        raise DataError(f"{number} is too large.")
    return square(number)


def kill_worker_once(number: int, folder: Path) -> bytes:
    """Kill the worker process at shard 3, the first time only."""
    (folder / f"{time.monotonic_ns()}-{number}").touch()
    mark = folder / "ended"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def wait_for_file(number: int, folder: Path) -> bytes:
    """Record the start of a shard; from shard 4 on wait for the file `go`."""
    (folder / f"started-{number}-{os.getpid()}").touch()
    if number >= 4:
        wait_for((folder / "go").exists)
    return square(number)


def process_of(variable: str) -> tuple[int, str]:
    return os.getpid(), os.environ.get(variable, "")
