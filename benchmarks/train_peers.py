"""Measure training speed and memory of the same model in manyheads and its peers, in turn in one run.

    python benchmarks/train_peers.py --root data/multi30k [--eole PYTHON] [--joeynmt PYTHON]
        [--contenders manyheads:bf16 marian:bf16 ...] [--seconds 60] [--tokens 1000000] [--updates 4] [--threads 2]
        [--isa avx2|avx512] [--text DIR] [--json]

Multi30k German-English, joint BPE of 8,000 pieces, width 256, feed-forward 1024, 4 heads, 3+3 layers, batches of
4,096 tokens, label smoothing 0.1, Adam, gradients clipped at 1, dropout 0.1 on embeddings and sublayers.

Each contender is a process of its own that waits at the beginning of an update. In a round, one contender after the
other trains for some whole updates, including the making of their batches. Its speed is the number of target tokens
without padding, end marks included, over the time; the first round warms up and is left out.
Ratios are medians over the rounds. Memory is the largest resident size of the process so far. manyheads computes
the heaviest update of the corpus once before the first; the other contenders compute only the measured updates.

    manyheads        its Trainer, as `manyheads train` runs it, which also asks the allocator to keep freed memory
    torch            torch.nn.Transformer in a plain loop, on the same batches, made by the same code
    marian           Hugging Face MarianMT in the same loop
    eole, joeynmt    their training programs on the same tokens, with their batching, which counts padding too

Eole and JoeyNMT run with the Python that the options name, as they need other packages. Their programs are held
where they begin an update, by a wrapper around the one method that both call with the batches of each (see
`peers/eole_program.py`, `peers/joeynmt_program.py`); all else is theirs. A toolkit that is not there is left out.

Afterwards those on the same batches train on until each has seen --tokens target tokens, and the loss of the
validation text is printed: nats a token, no smoothing, fp32. All of them had the same batches in the same order and
the same learning rates, up 100 updates and then down with the root of the step. MarianMT is post-norm, and the
others are pre-norm.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import Document, main, option, spread
from material import ROOT
from peers.contender_process import ContenderProcess, Program, available
from peers.corpus import configuration, prepare_corpus

OURS = ("manyheads:fp32", "manyheads:bf16")
MIN_ROUNDS = 3  # the first one warms up


@dataclass(frozen=True)
class Toolkit(Program):
    """A toolkit that trains.

    Attributes:
        precisions: the precisions that it supports on a CPU.
        same_batches: whether it trains on the batches of manyheads, so that losses can be compared.
    """

    precisions: tuple[str, ...] = ("fp32", "bf16")
    same_batches: bool = False


TOOLKITS = {
    "manyheads": Toolkit("peers.manyheads_trainer", "manyheads", same_batches=True),
    "torch": Toolkit("peers.torch_transformer", "torch", same_batches=True),
    "marian": Toolkit("peers.marian", "transformers", needs="transformers", same_batches=True),
    "eole": Toolkit("peers.eole_program", "eole", own_python="eole"),
    "joeynmt": Toolkit("peers.joeynmt_program", "joeynmt", own_python="joeynmt", precisions=("fp32",)),
}
CONTENDERS = {
    f"{name}:{precision}": toolkit for name, toolkit in TOOLKITS.items() for precision in toolkit.precisions
}


class TrainingProcess(ContenderProcess):
    """A contender that waits at the beginning of an update; `speeds` are target tokens a second of each round."""

    def __init__(self, contender: str, folder: Path, threads: int, pythons: Mapping[str, str | None]) -> None:
        """Start the process of a toolkit and a precision, such as "marian:bf16", on a prepared folder."""
        self.toolkit = CONTENDERS[contender]
        self.speeds: list[float] = []
        self.tokens = self.updates = 0
        log = folder / f"{contender.replace(':', '-')}.log"
        arguments = [folder, contender.partition(":")[2]]
        super().__init__(contender, self.toolkit, log, arguments, threads=threads, pythons=pythons)

    def train(self, updates: int) -> float:
        """Run a round of updates; return its speed in target tokens a second."""
        answer = self.ask(f"train {updates}")
        self.tokens += int(answer["tokens"])
        self.updates += updates
        return float(answer["tokens"] / answer["seconds"])

    def validation_loss(self) -> float:
        return float(self.ask("validate")["nll"])

    def row(self, contenders: list[TrainingProcess]) -> Document:
        """Return the figures, and for each of ours the median ratio of its speed to this one's."""
        speeds = self.speeds[1:]
        ratios = {
            f"times as fast, {our.name}": round(
                statistics.median(a / b for a, b in zip(our.speeds[1:], speeds, strict=True)), 3
            )
            for our in contenders
            if our.name in OURS
        }
        return {
            **spread(speeds, digits=0),
            "tokens an update": round(self.tokens / self.updates),
            "MiB": round(self.mebibytes),
            **ratios,
        }


def run_rounds(contenders: list[TrainingProcess], seconds: float, updates: int) -> None:
    start, rounds = time.perf_counter(), 0
    while rounds < MIN_ROUNDS or time.perf_counter() - start < seconds * len(contenders):
        for contender in contenders:
            contender.speeds.append(contender.train(updates))
            print(f"{contender.name}: {contender.speeds[-1]:,.0f} target tokens/s")
        rounds += 1


def validation_losses(contenders: list[TrainingProcess], tokens: int) -> Document:
    """Return the validation loss of the contenders on the same batches, after an equal number of tokens."""
    comparable = [contender for contender in contenders if contender.toolkit.same_batches]
    goal = max([tokens, *(contender.tokens for contender in comparable)])
    results = {}
    for contender in comparable:
        while contender.tokens < goal:
            contender.train(1)
        results[contender.name] = {"tokens": contender.tokens, "loss": round(contender.validation_loss(), 4)}
    return results


def measure(arguments: argparse.Namespace) -> Document:
    pythons = {"eole": arguments.eole, "joeynmt": arguments.joeynmt}
    names = available({name: CONTENDERS[name] for name in arguments.contenders}, pythons)
    if not names:
        raise SystemExit("nothing is left to measure")
    folder = arguments.text or arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    prepare_corpus(configuration(str(arguments.root), arguments.tiny), folder)
    with contextlib.ExitStack() as running:
        processes = [
            running.enter_context(TrainingProcess(name, folder, arguments.threads, pythons)) for name in names
        ]
        for process in processes:
            process.receive()  # ready
        run_rounds(processes, arguments.seconds, arguments.updates)
        rows = {process.name: process.row(processes) for process in processes}
        validation = validation_losses(processes, arguments.tokens) if arguments.tokens else {}
    return {
        "rounds": f"{len(processes[0].speeds) - 1} rounds of {arguments.updates} updates",
        "rows": rows,
        "validation": validation,
        "left out": [name for name in arguments.contenders if name not in names],
        "versions": {process.toolkit.package: process.version for process in processes},
    }


OPTIONS = {
    "--root": ROOT,
    "--contenders": option(list(CONTENDERS), "what to measure", choices=list(CONTENDERS), metavar="NAME"),
    "--eole": option(str, "Python with Eole installed", metavar="PYTHON"),
    "--joeynmt": option(str, "Python with JoeyNMT installed", metavar="PYTHON"),
    "--threads": option(2, "threads", tiny=1),
    "--seconds": option(60.0, "approximate seconds of measurement for each contender", tiny=0.0),
    "--updates": option(4, "updates of a contender in a round", tiny=1),
    "--tokens": option(1_000_000, "target tokens before validation; 0 skips it", tiny=1),
    "--text": option(Path, "folder that keeps the tokenised text for the next call", metavar="DIR"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="target tokens/s")
