"""Train a classification recipe with several seeds and print its scores: each seed, the mean and the range.

    python benchmarks/classify.py sst2-scratch --root data/sst2 --seeds 1 2 3 [--set training.epochs=20]

Every seed is a run directory under --out; a run that is finished is only scored again. Scores are of the split that
--split names, for which the recipe chose its checkpoint unless it is "test". Training time is that of the updates,
validation not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch


def manyheads(*arguments: str) -> Any:
    """Run the program and return the JSON document it prints."""
    command = [sys.executable, "-m", "manyheads", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def train_and_score(arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One seed."""
    settings = [f"data.root={arguments.root}", f"training.seed={seed}", *arguments.overrides]
    options = [part for setting in settings for part in ("--set", setting)]
    run = str(arguments.out / f"{Path(arguments.recipe).stem}-{seed}")
    trained = manyheads("train", arguments.recipe, "--out", run, *options)
    found = manyheads("evaluate", run, "--split", arguments.split, "--set", f"data.root={arguments.root}")
    return {
        "seed": seed,
        "steps": trained["step"],
        "minutes": round(trained["seconds"] / 60, 2),
        "accuracy": round(100 * found["accuracy"], 2),
        "macro F1": round(100 * found["macro_f1"], 2),
        "calibration error": round(100 * found["calibration_error"], 2),
        "loss": round(found["loss"], 4),
        "best step": trained["best_step"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--root", required=True)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=Path("runs/classify"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    arguments = parser.parse_args()
    rows = []
    for seed in arguments.seeds:
        rows.append(train_and_score(arguments, seed))
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), file=sys.stderr, flush=True)
    figures = [name for name, value in rows[0].items() if isinstance(value, float)]
    about = {
        "recipe": arguments.recipe,
        "set": arguments.overrides,
        "split": arguments.split,
        "device": platform.machine(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
    }
    mean = {name: round(statistics.mean(row[name] for row in rows), 3) for name in figures}
    spread = {name: [min(row[name] for row in rows), max(row[name] for row in rows)] for name in figures}
    print(json.dumps({**about, "rows": rows, "mean": mean, "range": spread}))


if __name__ == "__main__":
    main()
