"""A contender in a process of its own: orders go to its standard input, its answers are lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BENCHMARKS = Path(__file__).parents[1]


class Companion:
    """The process of a contender; its first answer says that it is ready."""

    def __init__(
        self, name: str, log: Path, arguments: list[str], *, threads: int, python: str | None = None
    ) -> None:
        """Start it.

        Args:
            name: for people.
            log: where all goes that it prints.
            arguments: a module and what that is told.
            threads: how many it computes with.
            python: the Python that has its packages; none is the one that runs this.
        """
        self.name = name
        self.log = log
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                [python or sys.executable, "-m", *arguments],
                env=environment(threads, ours=python is None),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, order: str) -> None:
        """Send an order."""
        assert self.process.stdin is not None
        print(order, file=self.process.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Return its next answer, waiting for it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"{self.name} ended, and its last words were:\n{tail}")
        found: dict[str, Any] = json.loads(line)
        return found


def version(package: str, python: str | None = None) -> str:
    """The version of a package, and in a Python of its own that of its torch too."""
    if python is None:
        return metadata.version(package)
    asked = f"from importlib.metadata import version; print(version({package!r}), 'torch', version('torch'))"
    return subprocess.run([python, "-c", asked], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def environment(threads: int, *, ours: bool) -> dict[str, str]:
    """The environment variables of a contender; those with a Python of their own do not see our packages."""
    paths = [str(BENCHMARKS)]
    if ours and (path := os.environ.get("PYTHONPATH")):
        paths.append(path)
    number = str(threads)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": number,
        "MKL_NUM_THREADS": number,
    }
