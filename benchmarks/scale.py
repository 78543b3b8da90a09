"""Measure how long a large corpus takes to read and to open again, and how much memory the training uses.

    python benchmarks/scale.py --pairs 20_000_000 --out /data/scale [--updates 50] [--json]

Writes two files of made-up sentences (each of its own words, so that nothing is a duplicate), reads, filters and
tokenises them as `manyheads train` does, then trains a small model for some updates, in a process of its own each
time: the first time from text, the second from the files that the first one wrote. Printed are seconds, the
resident size without the pages of files (which the system can take back), and the largest resident size with them.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine

WORDS = 30_000


def write_corpus(folder: Path, pairs: int) -> None:
    """Write sentences of 5 to 40 words whose target is the source in capitals."""
    if (folder / "train.xx").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(WORDS)]
    for split, count in (("train", pairs), ("valid", 200)):
        with (folder / f"{split}.xx").open("w") as source, (folder / f"{split}.yy").open("w") as target:
            for _ in range(count):
                line = " ".join(rng.choices(words, k=rng.randint(5, 40)))
                source.write(line + "\n")
                target.write(line.upper() + "\n")


def train_once(folder: Path, updates: int) -> dict[str, float]:
    """Prepare and train in this process."""
    from manyheads.config.schema import Config
    from manyheads.reports import SilentListener
    from manyheads.runs.train import train

    class SizeListener(SilentListener):
        """Record the time of the first update, and the resident size at each update."""

        def __init__(self) -> None:
            self.first = 0.0
            self.sizes: list[float] = []

        def step(self, report: Any) -> None:
            self.first = self.first or time.perf_counter()
            self.sizes.append(resident_mib())

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
        "largest MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def resident_mib() -> float:
    """Return the resident size of this process without the pages of files, which the system can take back."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


def measure(out: Path, pairs: int, updates: int) -> dict[str, dict[str, float]]:
    """Train from text, then again from the files of the first training, each time in its own process."""
    write_corpus(out, pairs)
    results = {}
    for name, more in (("from text", 0), ("again", updates)):
        command = [sys.executable, __file__, "--here", "--out", str(out), "--updates", str(updates + more)]
        results[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(
            name, "; ".join(f"{key} {value}" for key, value in results[name].items()), file=sys.stderr, flush=True
        )
    return results


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = machine.parse(parser, tiny={"pairs": 300, "updates": 3}, required=["out"])
    if arguments.here:
        print(json.dumps(train_once(arguments.out, arguments.updates)))
        return
    with tempfile.TemporaryDirectory() as folder:
        results = measure(arguments.out or Path(folder), arguments.pairs, arguments.updates)
    document = {"unit": "seconds, MiB", **machine.about(), "pairs": arguments.pairs, **results}
    if arguments.json:
        print(json.dumps(document))
    else:
        print(machine.describe(document))


if __name__ == "__main__":
    main()
