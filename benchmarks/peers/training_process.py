"""Control the training processes of the contenders from the measuring process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peers.contender_process import ContenderProcess, version


@dataclass(frozen=True)
class Toolkit:
    """A toolkit that trains.

    Attributes:
        module: the module of `peers` that runs in the contender's process.
        package: the package whose version is reported.
        precisions: the precisions that it supports on a CPU.
        needs: required packages that manyheads does not require.
        own_python: whether it needs a Python of its own, named by the option `--TOOLKIT`.
        same_batches: whether it trains on the batches of manyheads, so that losses can be compared.
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


class TrainingProcess(ContenderProcess):
    """A contender that waits at the beginning of an update.

    Attributes:
        version: version of the toolkit's package.
        speeds: target tokens a second of each round.
        tokens: target tokens of all rounds.
        updates: updates of all rounds.
        mebibytes: largest resident size so far.
    """

    def __init__(self, contender: str, folder: Path, *, threads: int, python: str | None) -> None:
        """Start the process.

        Args:
            contender: toolkit and precision, such as "marian:bf16".
            folder: the folder that `corpus.prepare_corpus` wrote.
            threads: number of threads.
            python: the Python that has the toolkit; None: the one that runs this program.
        """
        name, _, precision = contender.partition(":")
        self.toolkit = TOOLKITS[name]
        self.version = version(self.toolkit.package, python)
        self.speeds: list[float] = []
        self.tokens = self.updates = 0
        self.mebibytes = 0.0
        arguments = [f"peers.{self.toolkit.module}", str(folder), precision]
        super().__init__(contender, folder / f"{name}-{precision}.log", arguments, threads=threads, python=python)

    def train(self, updates: int) -> float:
        """Run a round of updates; return its speed in target tokens a second."""
        self.send(f"train {updates}")
        answer = self.receive()
        self.tokens += int(answer["tokens"])
        self.updates += updates
        self.mebibytes = answer["mebibytes"]
        return float(answer["tokens"] / answer["seconds"])

    def validation_loss(self) -> float:
        """Return the validation loss in nats a target token, in fp32 and without label smoothing."""
        self.send("validate")
        return float(self.receive()["nll"])
