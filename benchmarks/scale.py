"""Measure how long a large corpus takes to read and to open again, and how much memory the training uses.

    python benchmarks/scale.py --pairs 20_000_000 --out /data/scale [--updates 50] [--json]

Writes two files of made-up sentences (each of its own words, so that nothing is a duplicate), reads, filters and
tokenises them as `manyheads train` does, then trains a small model for some updates, in a process of its own each
time: the first time from text, the second from the files that the first one wrote. Printed are seconds, the
resident size without the pages of files (which the system can take back), and the largest resident size with them.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

from harness import Document, in_own_process, main, option
from material import named, write
from resident import memory_mib

WORDS = 30_000


def write_corpus(folder: Path, pairs: int) -> None:
    """Write sentences of 5 to 40 words whose target is the source in capitals."""
    if (folder / "train.xx").is_file():
        return
    rng = random.Random(1)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(WORDS)]
    for split, count in (("train", pairs), ("valid", 200)):
        lines = (" ".join(rng.choices(words, k=rng.randint(5, 40))) for _ in range(count))
        source = write(folder / f"{split}.xx", lines)
        with source.open(encoding="utf-8") as file:
            write(folder / f"{split}.yy", (line.rstrip("\n").upper() for line in file))


def train_once(folder: Path, updates: int) -> dict[str, float]:
    from manyheads.config.schema import Config
    from manyheads.runs.train import train
    from manyheads.training.log import SilentListener

    class SizeListener(SilentListener):
        def __init__(self) -> None:
            self.first = 0.0
            self.sizes: list[float] = []

        def step(self, report: Any) -> None:
            self.first = self.first or time.perf_counter()
            self.sizes.append(memory_mib("RssAnon"))

    config = Config.model_validate(
        {
            "data": {"root": str(folder), "source": "xx", "target": "yy"},
            "tokenizer": {"vocab_size": 8_000},
            "model": {"d_model": 64, "d_ff": 128, "num_encoder_layers": 1, "num_decoder_layers": 1},
            "training": {
                "steps": updates, "save_every": 10**6, "log_every": 1, "valid_sentences": 0, "warmup_steps": 10,
            },
        }
    )  # fmt: skip
    size_listener, start = SizeListener(), time.perf_counter()
    train(config, folder / "run", listener=size_listener, force=True)
    return {
        "seconds to the first update": round(size_listener.first - start, 1),
        "MiB at the first update": round(size_listener.sizes[0]),
        "MiB at the last": round(size_listener.sizes[-1]),
        "largest MiB": round(memory_mib()),
    }


def measure(arguments: argparse.Namespace) -> Document:
    """Train from text, then again from the files of the first training, each time in its own process."""
    write_corpus(arguments.out, arguments.pairs)
    results = {}
    for name, updates in (("from text", arguments.updates), ("again", 2 * arguments.updates)):
        results[name] = in_own_process(train_once, arguments.out, updates)
        print(name, results[name])
    return {"pairs": arguments.pairs, **results}


OPTIONS = {
    "--pairs": option(1_000_000, "pairs to make up", tiny=300),
    "--out": option(Path, "folder of the corpus and of the run", tiny=named("corpus"), required=True),
    "--updates": option(50, "updates of the first training; the second one goes on for as many", tiny=3),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="seconds, MiB")
