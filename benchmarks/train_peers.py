"""Measure training speed and memory of the same model in manyheads and its peers, in turn in one run.

    python benchmarks/train_peers.py --root data/multi30k [--eole PYTHON] [--joeynmt PYTHON]
        [--contenders manyheads:bf16 marian:bf16 ...] [--size default|base|tiny] [--seconds 60] [--tokens 1000000]
        [--updates 4] [--threads 2] [--isa avx2|avx512] [--text DIR] [--json]
    python benchmarks/train_peers.py --tiny

Multi30k German-English, joint BPE of 8,000 pieces, width 256, feed-forward 1024, 4 heads, 3+3 layers, batches of
4,096 tokens, label smoothing 0.1, Adam, gradients clipped at 1, dropout 0.1 on embeddings and sublayers. `base` is
width 512, feed-forward 2048, 8 heads, 6+6 layers; `tiny` is 128, 256, 4, 4+4 with 10,000 pieces.

Each contender is a process of its own that waits at the beginning of an update. In a round, one contender after the
other trains for some whole updates, including the making of their batches. Its speed is the number of target tokens
without padding, end marks included, over the time; the first round warms up and is left out.
Ratios are medians over the rounds. Memory is the largest resident size of the process so far. manyheads computes
the heaviest update of the corpus once before the first; the other contenders compute only the measured updates. A
contender keeps its memory while others train: measure `base` with fewer contenders at once.

    manyheads        its Trainer, as `manyheads train` runs it, which also asks the allocator to keep freed memory
    torch            torch.nn.Transformer in a plain loop, on the same batches, made by the same code
    marian           Hugging Face MarianMT in the same loop
    marian-trainer   MarianMT in Seq2SeqTrainer with its grouping by length, on about as many tokens an update
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
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
from peers.corpus import SIZES, configuration, prepare_corpus
from peers.training_process import CONTENDERS, TOOLKITS, TrainingProcess
from tiny import write_pairs

OURS = ("manyheads:fp32", "manyheads:bf16")
MIN_ROUNDS = 3  # the first one warms up


def available(contenders: list[str], pythons: dict[str, str | None]) -> list[str]:
    """Return the contenders that can run here; print the others."""
    installed = []
    for contender in contenders:
        name = contender.partition(":")[0]
        toolkit = TOOLKITS[name]
        missing = [package for package in toolkit.needs if importlib.util.find_spec(package) is None]
        if toolkit.own_python and pythons[name] is None:
            print(f"{contender} is left out: name a Python that has it with --{name} PYTHON", file=sys.stderr)
        elif missing:
            print(f"{contender} is left out: pip install {' '.join(missing)}", file=sys.stderr)
        else:
            installed.append(contender)
    if not installed:
        raise SystemExit("nothing is left to measure")
    return installed


def measure(contenders: list[TrainingProcess], seconds: float, updates: int) -> None:
    """Measure rounds for about the given number of seconds for each contender."""
    start, rounds = time.perf_counter(), 0
    while rounds < MIN_ROUNDS or time.perf_counter() - start < seconds * len(contenders):
        for contender in contenders:
            contender.speeds.append(contender.train(updates))
            print(f"{contender.name}: {contender.speeds[-1]:,.0f} target tokens/s", file=sys.stderr, flush=True)
        rounds += 1


def validation_losses(contenders: list[TrainingProcess], tokens: int) -> dict[str, Any]:
    """Return the validation loss of the contenders on the same batches, after an equal number of tokens.

    Args:
        contenders: all contenders; those that make batches of their own are left out.
        tokens: the minimum number of target tokens before validation.
    """
    comparable = [contender for contender in contenders if contender.toolkit.same_batches]
    goal = max([tokens, *(contender.tokens for contender in comparable)])
    results = {}
    for contender in comparable:
        while contender.tokens < goal:
            contender.train(1)
        results[contender.name] = {"tokens": contender.tokens, "loss": round(contender.validation_loss(), 4)}
    return results


def contender_row(contender: TrainingProcess, contenders: list[TrainingProcess]) -> dict[str, Any]:
    """Return the figures of a contender, and the ratio of our speed to its speed."""
    speeds = contender.speeds[1:]
    ratios = {
        our.name: round(statistics.median(a / b for a, b in zip(our.speeds[1:], speeds, strict=True)), 3)
        for our in contenders
        if our.name in OURS
    }
    return {
        "median": round(statistics.median(speeds)),
        "min": round(min(speeds)),
        "max": round(max(speeds)),
        "tokens an update": round(contender.tokens / contender.updates),
        "MiB": round(contender.mebibytes),
        "times as fast": ratios,
    }


def print_table(rows: dict[str, dict[str, Any]], validation: dict[str, Any], heading: str) -> None:
    """Print the figures as a table."""
    ours = [name for name in OURS if name in rows]
    print(heading)
    print(f"{'':20} {'tokens/s':>8}  {'[min to max]':18} {'an update':>9} {'MiB':>6}", *ours, sep="   ")
    for name, row in rows.items():
        span = f"[{row['min']:,} to {row['max']:,}]"
        figures = f"{row['median']:8,}  {span:18} {row['tokens an update']:9,} {row['MiB']:6,}"
        times = [f"{row['times as fast'][our]:.2f}x".rjust(len(our)) for our in ours]
        print(f"{name:20} {figures}", *times, sep="   ")
    print("the last columns: how many times as fast as this row that was, median of the rounds")
    for name, result in validation.items():
        print(f"{name:20} validation loss {result['loss']:.4f} after {result['tokens']:,} target tokens")


def parse_arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("--root", help="folder of Multi30k")
    parser.add_argument(
        "--contenders", nargs="+", default=CONTENDERS, choices=CONTENDERS, metavar="TOOLKIT:PRECISION"
    )
    parser.add_argument("--size", default="default", choices=list(SIZES))
    parser.add_argument("--eole", metavar="PYTHON", help="Python with Eole installed")
    parser.add_argument("--joeynmt", metavar="PYTHON", help="Python with JoeyNMT installed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="approximate seconds of measurement for each contender (default 60)",
    )
    parser.add_argument("--updates", type=int, default=4, help="updates of a contender in a round (default 4)")
    parser.add_argument(
        "--tokens",
        type=int,
        default=1_000_000,
        help="target tokens before validation; 0 skips it (default 1000000)",
    )
    parser.add_argument(
        "--text", type=Path, metavar="DIR", help="folder that keeps the tokenised text for the next call"
    )
    tiny = {"size": "check", "seconds": 0, "updates": 1, "tokens": 1, "threads": 1}
    return machine.parse(parser, tiny=tiny, required=["root"])


def main() -> None:
    arguments = parse_arguments()
    pythons = {"eole": arguments.eole, "joeynmt": arguments.joeynmt}
    contenders = available(arguments.contenders, pythons)
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as running:
        folder = arguments.text or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        root = arguments.root or str(write_pairs(folder, valid="val"))
        prepare_corpus(configuration(root, arguments.size), folder)
        processes = []
        for contender in contenders:
            python = pythons.get(contender.partition(":")[0])
            process = TrainingProcess(contender, folder, threads=arguments.threads, python=python)
            processes.append(running.enter_context(process))
        for process in processes:
            process.receive()  # ready
        measure(processes, arguments.seconds, arguments.updates)
        rows = {process.name: contender_row(process, processes) for process in processes}
        validation = validation_losses(processes, arguments.tokens) if arguments.tokens else {}
    about = machine.about(threads=arguments.threads)
    about["versions"] |= {process.toolkit.package: process.version for process in processes}
    rounds = f"{len(processes[0].speeds) - 1} rounds of {arguments.updates} updates"
    if arguments.json:
        unit = {"unit": "target tokens/s", "size": arguments.size, "rounds": rounds}
        left_out = [contender for contender in arguments.contenders if contender not in contenders]
        print(json.dumps({**unit, **about, "rows": rows, "validation": validation, "left out": left_out}))
        return
    print_table(
        rows, validation, f"non-pad target tokens/s, size {arguments.size}, {rounds}\n{machine.describe(about)}"
    )


if __name__ == "__main__":
    main()
