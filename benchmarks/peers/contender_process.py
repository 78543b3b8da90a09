"""Run a contender in its own process, which reads commands from standard input and answers with lines of JSON."""

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


class ContenderProcess:
    """The process of a contender. Its first answer says that it is ready."""

    def __init__(
        self, name: str, log: Path, arguments: list[str], *, threads: int, python: str | None = None
    ) -> None:
        """Start the process.

        Args:
            name: name in messages and tables.
            log: file for everything that the process prints.
            arguments: the name of a module, and its arguments.
            threads: number of threads.
            python: the Python that has the packages of the contender; None: the one that runs this program.
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

    def send(self, command: str) -> None:
        """Send a command."""
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)

    def receive(self) -> dict[str, Any]:
        """Wait for the next answer and return it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"{self.name} ended; the last lines of its output:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def version(package: str, python: str | None = None) -> str:
    """Return the version of a package; if it has its own Python, add the version of torch there."""
    if python is None:
        return metadata.version(package)
    script = f"from importlib.metadata import version; print(version({package!r}), 'torch', version('torch'))"
    return subprocess.run([python, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def environment(threads: int, *, ours: bool) -> dict[str, str]:
    """Return the environment variables of a contender.

    Args:
        threads: number of threads.
        ours: whether the Python of this program runs the contender. Other Pythons do not get our PYTHONPATH.
    """
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
