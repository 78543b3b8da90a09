"""Compare one translator of several languages with one translator for each direction.

    python benchmarks/directions.py --root data/multi30k [--languages de fr cs] [--updates 200]

All have the same shape, and each direction the same number of updates: the model of n directions is trained for
n x updates. Printed are BLEU with beam 5 and the number of outputs in another language, of every direction; the
mean; the size of the weights; and, for the one model, a direction that no text taught (from the first language to
the second). Then the translator from the first language is trained further, as many updates for each direction:
with the second language beside it, and alone. The runs are kept under --out; the same command continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import FOLDER, Document, main, option
from manyheads.runs.evaluate import evaluate
from material import out, train_recipe, write_pairs

Direction = tuple[str, str]


def train(arguments: argparse.Namespace, directions: Sequence[Direction], name: str, *start: str) -> None:
    """Train a translator of these directions; `start` are the settings of the run that it starts from."""
    pairs = [f'{{source = "{source}", target = "{target}"}}' for source, target in directions]
    languages = [f"data.{side}={code}" for side, code in zip(("source", "target"), directions[0], strict=True)]
    updates = arguments.updates * len(directions)
    settings = [
        f"data.root={arguments.root}",
        f"data.valid={arguments.valid}",
        f"data.test={arguments.test}",
        *(languages if len(directions) == 1 else [f"data.pairs=[{', '.join(pairs)}]"]),
        f"tokenizer.vocab_size={arguments.vocabulary}",
        f"model.d_model={arguments.width}",
        f"model.d_ff={4 * arguments.width}",
        f"training.batch_tokens={arguments.batch_tokens}",
        f"training.steps={updates}",
        f"training.warmup_steps={updates // 10}",
        f"training.save_every={max(1, updates // 4)}",
        *start,
    ]
    train_recipe(str(FOLDER / "directions.toml"), settings, arguments.out / name)


def scores(run: Path, direction: Direction) -> dict[str, Any]:
    document = evaluate(run, languages=direction).to_json()
    other = document["defects"].get("in-another-language", 0)
    signature = document["signature"]["bleu"]
    return {
        "bleu": document["bleu"],
        "signature": signature,
        "sentences": document["sentences"],
        "other language": other,
    }


def measure(arguments: argparse.Namespace) -> Document:
    out = arguments.out
    directions = [pair for language in arguments.languages for pair in (("en", language), (language, "en"))]
    runs = {"one model": directions} | {"-".join(direction): [direction] for direction in directions}
    rows: dict[str, Any] = {}
    for name, own in runs.items():
        train(arguments, own, name)
    for name, own in runs.items():
        rows[name] = {"-".join(direction): scores(out / name, direction) for direction in own}
        print(f"{name}: {rows[name]}")
    one = rows.pop("one model")
    single = {name: row[name] for name, row in rows.items()}
    sizes = {name: (out / name / "model.safetensors").stat().st_size for name in runs}
    size = sizes.pop("one model")
    result: dict[str, Any] = {
        "one model": one,
        "one for each direction": single,
        "mean BLEU": {name: fmean(row["bleu"] for row in part.values()) for name, part in
                      (("one model", one), ("one for each direction", single))},
        "bytes": {"one model": size, "one for each direction": sum(sizes.values())},
    }  # fmt: skip
    if len(arguments.languages) > 1:
        untrained = (arguments.languages[0], arguments.languages[1])
        result["untrained"] = {"-".join(untrained): scores(out / "one model", untrained)}
        result["added"] = add_language(arguments, out)
    return result


def add_language(arguments: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train the translator of the first language further: with the second language beside it, and alone."""
    old, new = ((language, "en") for language in arguments.languages[:2])
    parent, rows = out / "-".join(old), {"before": scores(out / "-".join(old), old)}
    for name, own in {"with another language": [old, new], "alone": [old]}.items():
        train(arguments, own, f"further {name}", f"model.init_from={parent}")
        for direction in own:
            rows[f"{name}: {'-'.join(direction)}"] = scores(out / f"further {name}", direction)
    return rows


OPTIONS = {
    "--root": option(Path, "folder of the text", tiny=write_pairs, required=True),
    "--languages": option(["de", "fr", "cs"], "languages besides English", tiny=["de"]),
    "--valid": option("val", "file of the validation text", tiny="valid"),
    "--test": option("test_2016_flickr", "file of the test text", tiny="test"),
    "--updates": option(200, "updates for each direction", tiny=2),
    "--width": option(128, "model.d_model", tiny=16),
    "--vocabulary": option(4_000, "pieces", tiny=300),
    "--batch-tokens": option(1_024, "target tokens of an update"),
    "--out": out("runs/directions"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU")
