"""Train a recipe with several seeds and print its scores: each seed, the mean and the deviation.

    python benchmarks/quality.py multi30k-de-en --root data/multi30k --seeds 1 2 3 [--set training.max_minutes=20]
    python benchmarks/quality.py multi30k-de-en --root data/multi30k --updates 250 500 1000 2000
    python benchmarks/quality.py sst2-scratch --root data/sst2 --split valid

Every seed is a run directory under --out; a run that is finished is only scored again. A translator translates the
test set greedily and with the recipe's beam; perplexity is over all target tokens, end marks counted. A classifier
is scored in per cent; with --split valid by the text for which the recipe chose its checkpoint. Training time is
that of the updates, validation not counted.

With --updates, each number of updates is a training of its own, as the schedule of the learning rate ends with it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness import Document, main, manyheads, option, over_seeds, settings, with_settings
from material import ROOT, SMALLEST, out

NO_LIMITS = ("training.max_minutes=none", "training.epochs=none")  # settings with --updates


def train_and_score(
    recipe: str, root: str | Path, run: Path, overrides: list[str], seed: int, *options: str, **process: Any
) -> Document:
    """Train with one seed in processes of the program, then score; `options` are those of `evaluate`."""
    options_of_training = with_settings([f"data.root={root}", f"training.seed={seed}", *overrides])
    trained = manyheads("train", recipe, "-o", run, *options_of_training, **process)
    score = ["evaluate", run, *with_settings([f"data.root={root}"]), *options]
    found = manyheads(*score, **process)
    row = {"seed": seed, "steps": trained["step"], "minutes": round(trained["seconds"] / 60, 2)}
    if "accuracy" in found:
        percent = {"accuracy": "accuracy", "macro F1": "macro_f1", "calibration error": "calibration_error"}
        row |= {name: round(100 * found[key], 2) for name, key in percent.items()}
        return row | {"loss": round(found["loss"], 4), "best step": trained["best_step"]}
    greedy = manyheads(*score, *with_settings(["search.beam_size=1"]), **process)
    return row | {
        "perplexity": round(found["perplexity"], 3),
        "greedy BLEU": round(greedy["bleu"], 2),
        "beam BLEU": round(found["bleu"], 2),
        "beam chrF": round(found["chrf"], 2),
        "signature": found["signature"]["bleu"],
    }


def measure(arguments: argparse.Namespace) -> Document:
    rows: list[Document] = []
    over = {}
    for updates in arguments.updates or [None]:
        limits = [*NO_LIMITS, f"training.steps={updates}"] if updates else []
        own = []
        for seed in arguments.seeds:
            name = "-".join(str(part) for part in (Path(arguments.recipe).stem, updates, seed) if part is not None)
            overrides = [*arguments.overrides, *limits]
            options = ["--split", arguments.split] if arguments.split else []
            scores = train_and_score(
                arguments.recipe, arguments.root, arguments.out / name, overrides, seed, *options
            )
            own.append({"updates": updates, **scores})
            print(own[-1])
        rows += own
        over[f"{updates or 'all'} updates"] = over_seeds(own)
    return {"recipe": arguments.recipe, "set": arguments.overrides, "rows": rows, "seeds": over}


OPTIONS = {
    "recipe": option(str, "recipe or TOML file", tiny="multi30k-en-de", required=True),
    "--root": ROOT,
    "--split": option(str, "split to score (default: test)", choices=["valid", "test"]),
    "--seeds": option([1], "seeds"),
    "--updates": option(int, "numbers of updates, each a training of its own", nargs="+"),
    "--out": out("runs/quality"),
    "--set": settings(SMALLEST),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU, perplexity, per cent")
