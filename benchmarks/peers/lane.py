"""The measuring side: a contender in a process of its own, told when to work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

BENCHMARKS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Toolkit:
    """A toolkit that trains.

    Attributes:
        module: what runs in the contender's process.
        package: whose version says what was measured.
        precisions: those it has on a processor.
        needs: packages that it needs beside those of manyheads.
        own_python: whether it runs with a Python of its own, which the option of its name gives.
        same_batches: whether it sees the batches of manyheads, so that the losses can be compared.
    """

    module: str
    package: str
    precisions: tuple[str, ...] = ("fp32", "bf16")
    needs: tuple[str, ...] = ()
    own_python: bool = False
    same_batches: bool = False


TOOLKITS = {
    "manyheads": Toolkit("manyheads_trainer", "torch", same_batches=True),
    "torch": Toolkit("torch_transformer", "torch", same_batches=True),
    "marian": Toolkit("marian", "transformers", needs=("transformers",), same_batches=True),
    "marian-trainer": Toolkit("marian_trainer", "transformers", needs=("transformers", "accelerate")),
    "eole": Toolkit("eole_program", "eole", own_python=True),
    "joeynmt": Toolkit("joeynmt_program", "joeynmt", precisions=("fp32",), own_python=True),
}
CONTENDERS = [f"{name}:{precision}" for name, toolkit in TOOLKITS.items() for precision in toolkit.precisions]


class Lane:
    """One contender, waiting at the beginning of an update.

    Attributes:
        version: of the toolkit's package.
        speeds: target tokens a second of each turn.
        tokens: target tokens of all turns.
        updates: updates of all turns.
        mebibytes: its largest resident size so far.
    """

    def __init__(self, contender: str, folder: Path, *, threads: int, python: str | None) -> None:
        """Start it and wait until it could begin.

        Args:
            contender: toolkit and precision, such as "marian:bf16".
            folder: what `corpus.prepare_corpus` wrote.
            threads: how many it computes with.
            python: the Python that has the toolkit; none is the one that runs this.
        """
        name, _, precision = contender.partition(":")
        self.contender = contender
        self.toolkit = TOOLKITS[name]
        self.log = folder / f"{name}-{precision}.log"
        self.version = version(python or sys.executable, self.toolkit.package)
        command = [python or sys.executable, "-m", f"peers.{self.toolkit.module}", str(folder), precision]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                env=environment(threads, ours=python is None),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.speeds: list[float] = []
        self.tokens = self.updates = 0
        self.mebibytes = 0.0
        self.receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def work(self, updates: int) -> float:
        """A turn of some updates; returns its target tokens a second."""
        self.send(f"work {updates}")
        found = self.receive()
        self.tokens += int(found["tokens"])
        self.updates += updates
        self.mebibytes = found["mebibytes"]
        return found["tokens"] / found["seconds"]

    def validation_loss(self) -> float:
        """Nats a target token of the validation text, in fp32 and without smoothing."""
        self.send("validate")
        return self.receive()["nll"]

    def send(self, command: str) -> None:
        """Tell it what to do."""
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)

    def receive(self) -> dict[str, float]:
        """Wait for its answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"{self.contender} ended, and its last words were:\n{tail}")
        found: dict[str, float] = json.loads(line)
        return found


def version(python: str, package: str) -> str:
    """The version of a package that a Python has."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
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
