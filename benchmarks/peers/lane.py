"""The measuring process: starts a contender in a process of its own, and says when it trains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peers.companion import Companion, version


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
    "manyheads": Toolkit("manyheads_trainer", "manyheads", same_batches=True),
    "torch": Toolkit("torch_transformer", "torch", same_batches=True),
    "marian": Toolkit("marian", "transformers", needs=("transformers",), same_batches=True),
    "marian-trainer": Toolkit("marian_trainer", "transformers", needs=("transformers", "accelerate")),
    "eole": Toolkit("eole_program", "eole", own_python=True),
    "joeynmt": Toolkit("joeynmt_program", "joeynmt", precisions=("fp32",), own_python=True),
}
CONTENDERS = [f"{name}:{precision}" for name, toolkit in TOOLKITS.items() for precision in toolkit.precisions]


class Lane(Companion):
    """One contender, waiting at the beginning of an update.

    Attributes:
        version: of the toolkit's package.
        speeds: target tokens a second of each turn.
        tokens: target tokens of all turns.
        updates: updates of all turns.
        mebibytes: its largest resident size so far.
    """

    def __init__(self, contender: str, folder: Path, *, threads: int, python: str | None) -> None:
        """Start it.

        Args:
            contender: toolkit and precision, such as "marian:bf16".
            folder: what `corpus.prepare_corpus` wrote.
            threads: how many it computes with.
            python: the Python that has the toolkit; none is the one that runs this.
        """
        name, _, precision = contender.partition(":")
        self.contender = contender
        self.toolkit = TOOLKITS[name]
        self.version = version(self.toolkit.package, python)
        self.speeds: list[float] = []
        self.tokens = self.updates = 0
        self.mebibytes = 0.0
        arguments = [f"peers.{self.toolkit.module}", str(folder), precision]
        super().__init__(contender, folder / f"{name}-{precision}.log", arguments, threads=threads, python=python)

    def work(self, updates: int) -> float:
        """Let the contender make some updates; return its target tokens a second."""
        self.send(f"work {updates}")
        found = self.receive()
        self.tokens += int(found["tokens"])
        self.updates += updates
        self.mebibytes = found["mebibytes"]
        return float(found["tokens"] / found["seconds"])

    def validation_loss(self) -> float:
        """Nats a target token of the validation text, in fp32 and without smoothing."""
        self.send("validate")
        return float(self.receive()["nll"])
