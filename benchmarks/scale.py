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
from pathlib import Path

from harness import FOLDER, Document, in_own_process, main, option
from material import named, write
from memory import train_here

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


def measure(arguments: argparse.Namespace) -> Document:
    """Train from text, then again from the files of the first training, each time in its own process."""
    out = arguments.out
    write_corpus(out, arguments.pairs)
    results, settings = {}, [f"data.root={out}", "training.save_every=1000000", "training.warmup_steps=10"]
    for name, updates in (("from text", arguments.updates), ("again", 2 * arguments.updates)):
        found = in_own_process(train_here, "ours", str(FOLDER / "scale.toml"), settings, updates, 1, out / "run")
        results[name] = {
            "seconds to the first update": found["seconds_to_the_first_update"],
            "MiB at the first update": next(iter(found["mib"].values())),
            "MiB at the last": found["mib"][updates],
            "largest MiB": found["largest_mib_with_files"],
        }
        print(name, results[name])
    return {"pairs": arguments.pairs, **results}


OPTIONS = {
    "--pairs": option(1_000_000, "pairs to make up", tiny=300),
    "--out": option(Path, "folder of the corpus and of the run", tiny=named("corpus"), required=True),
    "--updates": option(50, "updates of the first training; the second one goes on for as many", tiny=5),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="seconds, MiB")
