"""Kill a training repeatedly at random moments; each time the same call resumes it.

    python -m tests.system.kills --kills 200 [--seed 1]

The processes are forked from one that has imported all modules, so that they start fast. The weights and the log of
each completed training are compared with those of a training that was never interrupted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from tests.runs.parts import make_config, metrics, write_corpus
from tests.training.parts import CollectingListener

from manyheads.config.schema import Config
from manyheads.runs.train import train


def hard_config(corpus: Path) -> Config:
    """Return a configuration with all random and all stateful features, and with many saves to interrupt."""
    return make_config(
        corpus,
        tokenizer={"sampling": 0.2},
        model={"dropout": 0.3},
        training={
            "steps": 40, "save_every": 2, "log_every": 1, "accumulation": 2, "patience": 50, "ema": 0.9,
            "r_drop": 1.0, "average_checkpoints": 2, "schedule": "plateau", "plateau_patience": 1,
        },
    )  # fmt: skip


def train_in_process(corpus: Path, out: Path) -> None:
    """Train in the current process, with one thread."""
    torch.set_num_threads(1)
    train(hard_config(corpus), out, listener=CollectingListener())


def kill_and_compare(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """Kill trainings; return the number of completed trainings, and that of kills that left a draft of a file.

    Raises:
        AssertionError: a resumed training differs from the uninterrupted one.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.system.kills"])
    corpus, rng = write_corpus(folder / "corpus"), random.Random(seed)

    def start(out: Path) -> multiprocessing.Process:
        process = processes.Process(target=train_in_process, args=(corpus, out))
        process.start()
        return process  # type: ignore[return-value]

    def finish(process: multiprocessing.Process) -> None:
        process.join()
        assert process.exitcode == 0, f"training ended with {process.exitcode}"

    finish(start(folder / "warm"))  # starts the fork server and fills the disk cache
    started = time.monotonic()
    finish(start(folder / "whole"))
    duration = time.monotonic() - started
    done = ended = drafts = 0
    while done < kills or not ended:
        out = folder / f"killed-{ended}"
        process = start(out)
        if done < kills:
            process.join(rng.uniform(0, duration))
        else:
            process.join()
        if process.exitcode is None:
            process.kill()
            process.join()
            done += 1
            drafts += any((out / "checkpoints").glob(".step-*.draft")) or any(out.glob(".*.draft"))
            continue
        finish(process)
        assert_same(out, folder / "whole")
        ended += 1
    return ended, drafts


def assert_same(run: Path, other: Path) -> None:
    """Compare weights and log bit for bit."""
    expected, found = load_file(other / "model.safetensors"), load_file(run / "model.safetensors")
    assert all(torch.equal(tensor, found[name]) for name, tensor in expected.items()), run
    assert metrics(run) == metrics(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ended, drafts = kill_and_compare(Path(folder), arguments.kills, arguments.seed)
    print(
        f"{arguments.kills} kills, {drafts} of them inside a save; {ended} trainings ended, all bit for bit alike"
    )


if __name__ == "__main__":
    main()
