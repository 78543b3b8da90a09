"""Train a classification recipe with several seeds and print its scores: each seed, the mean and the range.

    python benchmarks/classify.py sst2-scratch --root data/sst2 --seeds 1 2 3 [--set training.epochs=20] [--json]

Every seed is a run directory under --out; a run that is finished is only scored again. Scores are of the split that
--split names, for which the recipe chose its checkpoint unless it is "test". Training time is that of the updates,
validation not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine
from manyheads.config.load import load_config, resolve_recipe
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train
from tiny import write_labelled


def train_and_score(arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Train and score the recipe with one seed."""
    root = f"data.root={arguments.root}"
    config = load_config(resolve_recipe(arguments.recipe), [root, f"training.seed={seed}", *arguments.overrides])
    run = arguments.out / f"{Path(arguments.recipe).stem}-{seed}"
    trained = train(config, run)
    evaluation = evaluate(run, split=arguments.split, overrides=[root]).to_json()
    return {
        "seed": seed,
        "steps": trained.step,
        "minutes": round(trained.seconds / 60, 2),
        "accuracy": round(100 * evaluation["accuracy"], 2),
        "macro F1": round(100 * evaluation["macro_f1"], 2),
        "calibration error": round(100 * evaluation["calibration_error"], 2),
        "loss": round(evaluation["loss"], 4),
        "best step": trained.best_step,
    }


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--root")
    parser.add_argument("--split", default="valid")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=Path("runs/classify"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    settings = ["model.d_model=16", "model.d_ff=24", "training.epochs=none", "training.steps=2"]
    tiny = {"recipe": "sst2-scratch", "overrides": [*settings, "training.save_every=2"]}
    arguments = machine.parse(parser, tiny=tiny, required=["recipe", "root"])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if arguments.root is None:
            arguments.root, arguments.out = write_labelled(Path(folder)), Path(folder)
        for seed in arguments.seeds:
            rows.append(train_and_score(arguments, seed))
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), file=sys.stderr, flush=True)
    figures = [name for name, value in rows[0].items() if isinstance(value, float)]
    mean = {name: round(statistics.mean(row[name] for row in rows), 3) for name in figures}
    spread = {name: [min(row[name] for row in rows), max(row[name] for row in rows)] for name in figures}
    about = {"unit": "%", "recipe": arguments.recipe, "set": arguments.overrides, "split": arguments.split}
    print(json.dumps({**about, **machine.about(), "rows": rows, "mean": mean, "range": spread}))


if __name__ == "__main__":
    main()
