"""Kill a training again and again at random moments; each time the same call goes on.

    python -m tests.system.kills --kills 200 [--seed 1]

The processes are forked from one that has imported everything, so that a start takes no time. After each training
that came to its end, its weights and its log are compared with those of one that was never disturbed.
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
    """All that uses chance and all that has a memory; it saves so often that many kills fall into a save."""
    return make_config(
        corpus,
        tokenizer={"sampling": 0.2},
        model={"dropout": 0.3},
        training={
            "steps": 40, "save_every": 2, "log_every": 1, "accumulation": 2, "patience": 50, "ema": 0.9,
            "r_drop": 1.0, "average_checkpoints": 2, "schedule": "plateau", "plateau_patience": 1,
        },
    )  # fmt: skip


def train_here(corpus: Path, out: Path) -> None:
    """What each process does."""
    torch.set_num_threads(1)
    train(hard_config(corpus), out, listener=CollectingListener())


def kill_and_compare(folder: Path, kills: int, seed: int) -> tuple[int, int]:
    """Kill that often; returns how many trainings came to their end, and how many kills left a draft behind.

    Raises:
        AssertionError: a training that was killed ended otherwise than one that was not.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.system.kills"])
    corpus, dice = write_corpus(folder / "corpus"), random.Random(seed)

    def start(out: Path) -> multiprocessing.Process:
        process = processes.Process(target=train_here, args=(corpus, out))
        process.start()
        return process  # type: ignore[return-value]

    def finish(process: multiprocessing.Process) -> None:
        process.join()
        assert process.exitcode == 0, f"training ended with {process.exitcode}"

    finish(start(folder / "warm"))  # the server has started, the disk's cache is filled
    begun = time.monotonic()
    finish(start(folder / "whole"))
    whole = time.monotonic() - begun
    done = ended = drafts = 0
    while done < kills or not ended:
        out = folder / f"killed-{ended}"
        process = start(out)
        if done < kills:
            process.join(dice.uniform(0, whole))
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
    """Weights and log, bit for bit."""
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
