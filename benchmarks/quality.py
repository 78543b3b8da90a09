"""Train a recipe with several seeds and print its scores: each seed and the mean.

    python benchmarks/quality.py multi30k-de-en --root data/multi30k --seeds 1 2 3 [--set training.max_minutes=20]

Every seed is a run directory under --out; a run that is finished is only scored again. The test set is translated
greedily and with the recipe's beam; perplexity is over all target tokens, end marks counted. Training time is that
of the updates, validation not counted.
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


def manyheads(*arguments: str) -> Any:
    """Run the program and return the JSON document it prints."""
    command = [sys.executable, "-m", "manyheads", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def train_and_score(recipe: str, root: str, out: Path, overrides: list[str], seed: int) -> dict[str, Any]:
    """One seed: training, then greedy and beam search on the test set."""
    settings = [f"data.root={root}", f"training.seed={seed}", *overrides]
    options = [part for setting in settings for part in ("--set", setting)]
    run = str(out / f"{Path(recipe).stem}-{seed}")
    trained = manyheads("train", recipe, "--out", run, *options)
    greedy = manyheads("evaluate", run, "--set", f"data.root={root}", "--set", "search.beam_size=1")
    beam = manyheads("evaluate", run, "--set", f"data.root={root}")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--root", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--out", type=Path, default=Path("runs/quality"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for seed in arguments.seeds:
        rows.append(train_and_score(arguments.recipe, arguments.root, arguments.out, arguments.overrides, seed))
        if not arguments.json:
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    figures = [name for name, value in rows[0].items() if isinstance(value, float)]
    means = {name: round(statistics.mean(row[name] for row in rows), 3) for name in figures}
    if arguments.json:
        about = {"recipe": arguments.recipe, "set": arguments.overrides, "cores": os.cpu_count()}
        print(json.dumps({**about, "device": platform.machine(), "rows": rows, "mean": means}))
        return
    print(f"mean of {len(rows)}: " + "  ".join(f"{name} {value}" for name, value in means.items()))


if __name__ == "__main__":
    main()
