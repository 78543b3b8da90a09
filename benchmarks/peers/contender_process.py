"""Run a contender in its own process, which reads commands from standard input and answers with lines of JSON."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BENCHMARKS = Path(__file__).parents[1]
START = """
import sys
from pathlib import Path
from {} import main
*paths, word = sys.argv[1:]
main(*map(Path, paths), word)
"""


@dataclass(frozen=True)
class Program:
    """A program that is compared.

    Attributes:
        module: the module that runs in the contender's process: its `main` takes two paths or one, and a word.
        package: the package whose version is reported.
        needs: a required package that manyheads does not require.
        own_python: name of the option for the Python that it needs, if it needs one of its own.
    """

    module: str
    package: str
    needs: str | None = None
    own_python: str | None = None

    def missing(self, pythons: Mapping[str, str | None]) -> str:
        """Return what has to be done before it can run here, or nothing."""
        if self.own_python and pythons[self.own_python] is None:
            return f"name a Python that has it with --{self.own_python} PYTHON"
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return f"pip install {self.needs}"
        return ""


def available(programs: Mapping[str, Program], pythons: Mapping[str, str | None]) -> dict[str, Program]:
    """Return the programs that can run here; print the others."""
    for name, program in programs.items():
        if missing := program.missing(pythons):
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return {name: program for name, program in programs.items() if not program.missing(pythons)}


class ContenderProcess:
    """The process of a contender, and its largest resident size so far. Its first answer says that it is ready."""

    def __init__(
        self,
        name: str,
        program: Program,
        log: Path,
        arguments: Sequence[str | Path],
        *,
        threads: int,
        pythons: Mapping[str, str | None],
    ) -> None:
        """Start the process with the arguments of its `main`; what it prints goes to the file `log`."""
        self.name = name
        self.log = log
        self.mebibytes = 0.0
        python = pythons[program.own_python] if program.own_python else None
        self.version = version(program.package, python)
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                [python or sys.executable, "-c", START.format(program.module), *map(str, arguments)],
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

    def ask(self, command: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"{self.name} ended; the last lines of its output:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        self.mebibytes = answer.get("mebibytes", self.mebibytes)
        return answer


def version(package: str, python: str | None = None) -> str:
    """Return the version of a package; if it has its own Python, add the version of torch there."""
    if python is None:
        return metadata.version(package)
    script = f"from importlib.metadata import version; print(version({package!r}), 'torch', version('torch'))"
    return subprocess.run([python, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def environment(threads: int, *, ours: bool) -> dict[str, str]:
    """Return the environment variables of a contender; Pythons that are not ours do not get our PYTHONPATH."""
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
