"""A real Dask scheduler and workers on this machine, for tests and for the commands of pages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from distributed import Client

LIMIT = 120  # seconds; only reached when something fails


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Cluster:
    """A scheduler, and workers with one thread each that can be killed and added.

    Attributes:
        address: the address of the scheduler.
        workers: the processes of the workers.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.log = (folder / "dask.log").open("ab")
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)]
        self.scheduler = self.start("dask_scheduler", *options)
        try:
            self.address = self.add_workers(workers)
        except BaseException:
            self.close()
            raise

    def add_workers(self, workers: int) -> str:
        """Add workers, wait until all are connected, and return the address of the scheduler."""
        for _ in range(workers):
            self.add()
        wait_for(self.file.exists)
        if workers:
            with Client(scheduler_file=str(self.file), set_as_default=False, timeout=LIMIT) as client:
                client.wait_for_workers(workers, timeout=LIMIT)
        return str(json.loads(self.file.read_text(encoding="utf-8"))["address"])

    def start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a program of Dask."""
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *options],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            stdout=self.log,
            stderr=self.log,
        )

    def add(self) -> None:
        """Add a worker."""
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder)]
        self.workers.append(self.start("dask_worker", "--scheduler-file", str(self.file), *options))

    def kill(self, number: int = 0) -> None:
        """Kill a worker."""
        self.workers[number].kill()
        self.workers.pop(number).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self.log.close()
