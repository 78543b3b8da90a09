"""Measure what each technique for small data adds: train a recipe with and without it, with several seeds.

    python benchmarks/techniques.py --root data/multi30k [--seeds 1 2 3] [--only NAME ...] [--jobs 2] [--json]

The base is multi30k-en-de made smaller (width 128, 2+2 layers, 4,000 pieces) and trained for 5 epochs, so that a
run takes minutes on one core. All rows see the same number of epochs; R-Drop's updates take twice as long. The
table has scores of test_2016_flickr: sacreBLEU with beam 5 and perplexity, mean and standard deviation over the
seeds. Runs are kept under --out; finished runs are only scored again.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import FOLDER, Document, main, option, over_seeds, settings
from material import ROOT, SMALLEST, out
from quality import train_and_score

TABLE = tomllib.loads((FOLDER / "techniques.toml").read_text(encoding="utf-8"))
ROWS: dict[str, list[str]] = TABLE["rows"]


def measure(arguments: argparse.Namespace) -> Document:
    arguments.threads = max(1, (os.cpu_count() or 1) // arguments.jobs)
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)}

    def train(name: str, seed: int) -> Document:
        run = arguments.out / f"{list(ROWS).index(name)}" / f"{Path(arguments.recipe).stem}-{seed}"
        overrides = [*TABLE["base"], *ROWS[name], *arguments.overrides]
        row = train_and_score(arguments.recipe, arguments.root, run, overrides, seed, env=environment)
        print(f"{name}, seed {seed}: {row}")
        return row

    with ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = {name: [pool.submit(train, name, seed) for seed in arguments.seeds] for name in arguments.only}
        rows = {name: [task.result() for task in own] for name, own in tasks.items()}
    return {"rows": rows, "seeds": {name: over_seeds(own) for name, own in rows.items()}}


OPTIONS = {
    "--recipe": option(TABLE["recipe"], "recipe"),
    "--root": ROOT,
    "--seeds": option([1, 2, 3], "seeds", tiny=[1]),
    "--only": option(list(ROWS), "rows to train", choices=list(ROWS), tiny=list(ROWS)[:1]),
    "--jobs": option(2, "runs at the same time", tiny=1),
    "--out": out("runs/techniques"),
    "--set": settings(SMALLEST),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU")
