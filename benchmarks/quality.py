"""Train a recipe with several seeds and print its scores: each seed and the mean.

    python benchmarks/quality.py multi30k-de-en --root data/multi30k --seeds 1 2 3 [--set training.max_minutes=20]
    python benchmarks/quality.py multi30k-de-en --root data/multi30k --updates 250,500,1000,2000

Every seed is a run directory under --out; a run that is finished is only scored again. The test set is translated
greedily and with the recipe's beam; perplexity is over all target tokens, end marks counted. Training time is that
of the updates, validation not counted.

With --updates, each number of updates is a training of its own, as the schedule of the learning rate ends with it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import machine
import tiny

NO_LIMITS = ("training.max_minutes=none", "training.epochs=none")  # settings with --updates


def manyheads(*arguments: str) -> Any:
    """Run the program and return the JSON document it prints."""
    command = [sys.executable, "-m", "manyheads", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def train_and_score(recipe: str, root: str, run: Path, overrides: list[str], seed: int) -> dict[str, Any]:
    """Train with one seed, then score greedy and beam search on the test set."""
    settings = [f"data.root={root}", f"training.seed={seed}", *overrides]
    options = [part for setting in settings for part in ("--set", setting)]
    trained = manyheads("train", recipe, "-o", str(run), *options)
    greedy = manyheads("evaluate", str(run), "--set", f"data.root={root}", "--set", "search.beam_size=1")
    beam = manyheads("evaluate", str(run), "--set", f"data.root={root}")
    return {
        "seed": seed,
        "steps": trained["step"],
        "minutes": round(trained["seconds"] / 60, 2),
        "perplexity": round(beam["perplexity"], 3),
        "greedy BLEU": round(greedy["bleu"], 2),
        "beam BLEU": round(beam["bleu"], 2),
        "beam chrF": round(beam["chrf"], 2),
        "signature": beam["signature"]["bleu"],
    }


def updates_list(text: str) -> list[int]:
    """Parse a list of numbers such as "250,500"."""
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--root")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--updates", type=updates_list, metavar="N,N,...", help="Number of updates of each training."
    )
    parser.add_argument("--out", type=Path, default=Path("runs/quality"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    defaults = {"recipe": "multi30k-en-de", "overrides": [*tiny.SMALLEST]}
    arguments = machine.parse(parser, tiny=defaults, required=["recipe", "root"])
    with tempfile.TemporaryDirectory() as folder:
        if arguments.root is None:
            arguments.root, arguments.out = str(tiny.write_pairs(Path(folder), valid="val")), Path(folder)
        measure(arguments)


def measure(arguments: argparse.Namespace) -> None:
    """Train and score every seed and number of updates, and print the figures."""
    rows = []
    stem = Path(arguments.recipe).stem
    for updates in arguments.updates or [None]:
        limits = [*NO_LIMITS, f"training.steps={updates}"] if updates else []
        for seed in arguments.seeds:
            run = arguments.out / (f"{stem}-{updates}-{seed}" if updates else f"{stem}-{seed}")
            overrides = [*arguments.overrides, *limits]
            scores = train_and_score(arguments.recipe, arguments.root, run, overrides, seed)
            rows.append({"updates": updates, **scores})
            if not arguments.json:
                print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    figures = [name for name, value in rows[0].items() if isinstance(value, float)]
    means = {
        updates or "": {
            name: round(statistics.mean(row[name] for row in rows if row["updates"] == updates), 3)
            for name in figures
        }
        for updates in arguments.updates or [None]
    }
    if arguments.json:
        settings = {"recipe": arguments.recipe, "set": arguments.overrides}
        print(json.dumps({"unit": "BLEU, perplexity", **machine.about(), **settings, "rows": rows, "mean": means}))
        return
    for updates, values in means.items():
        print(f"mean {updates}: " + "  ".join(f"{name} {value}" for name, value in values.items()))


if __name__ == "__main__":
    main()
