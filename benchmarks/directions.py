"""Compare one translator of several languages with one translator for each direction.

    python benchmarks/directions.py --root data/multi30k [--languages de fr cs] [--updates 200]

All have the same shape, and each direction the same number of updates: the model of n directions is trained for
n x updates. Printed are BLEU with beam 5 and the number of outputs in another language, of every direction; the
mean; the size of the weights; and, for the one model, a direction that no text taught (from the first language to
the second). Then the translator from the first language is trained further, as many updates for each direction:
with the second language beside it, and alone. `--out` keeps the runs; the same command continues. One JSON line at
the end, all else on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import machine
from manyheads.config.load import parse_config
from manyheads.config.schema import Config
from manyheads.reports import SilentListener
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train
from tiny import WORDS, write_pairs

Direction = tuple[str, str]


class Messages(SilentListener):
    """Print messages and validations."""

    def message(self, text: str) -> None:
        print(text, flush=True)

    def validation(self, report: Any) -> None:
        print(f"update {report.step}: validation loss {report.loss:.3f}", flush=True)


def configuration(
    arguments: argparse.Namespace, directions: Sequence[Direction], parent: Path | None = None
) -> Config:
    """Return the configuration of a translator of these directions; `parent` is a run that it starts from."""
    updates = arguments.updates * len(directions)
    data: dict[str, Any] = {
        "root": arguments.root,
        "train": "train",
        "valid": arguments.valid,
        "test": arguments.test,
    }
    if len(directions) == 1:
        data |= dict(zip(("source", "target"), directions[0], strict=True))
    else:
        data["pairs"] = [{"source": source, "target": target} for source, target in directions]
    width, start = arguments.width, {} if parent is None else {"init_from": str(parent)}
    values = {
        "data": data,
        "tokenizer": {"vocab_size": arguments.vocabulary},
        "model": {"d_model": width, "d_ff": 4 * width, "positions": "rotary", "dropout": 0.1, **start},
        "training": {
            "steps": updates,
            "batch_tokens": arguments.batch_tokens,
            "optimizer": "muon",
            "learning_rate": 8e-3,
            "muon_factor": 0.6,
            "schedule": "linear",
            "warmup_steps": updates // 10,
            "label_smoothing": 0.1,
            "save_every": max(1, updates // 4),
            "valid_sentences": 0,
        },
    }
    return parse_config(values, origin="benchmarks/directions.py")


def scores(run: Path, direction: Direction) -> dict[str, Any]:
    """Return BLEU, its signature, and the number of outputs in another language."""
    document = evaluate(run, languages=direction, listener=Messages()).to_json()
    other = document["defects"].get("in-another-language", 0)
    signature = document["signature"]["bleu"]
    return {
        "bleu": document["bleu"],
        "signature": signature,
        "sentences": document["sentences"],
        "other language": other,
    }


def measure(arguments: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train and score all translators."""
    directions = [pair for language in arguments.languages for pair in (("en", language), (language, "en"))]
    runs = {"one model": directions} | {"-".join(direction): [direction] for direction in directions}
    rows: dict[str, Any] = {}
    for name, own in runs.items():
        train(configuration(arguments, own), out / name, listener=Messages())
    for name, own in runs.items():
        rows[name] = {"-".join(direction): scores(out / name, direction) for direction in own}
        print(f"{name}: {rows[name]}", flush=True)
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
        train(configuration(arguments, own, parent), out / f"further {name}", listener=Messages())
        for direction in own:
            rows[f"{name}: {'-'.join(direction)}"] = scores(out / f"further {name}", direction)
    return rows


def parse_arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("--root")
    parser.add_argument("--languages", nargs="+", default=["de", "fr", "cs"], help="languages besides English")
    parser.add_argument("--valid", default="val")
    parser.add_argument("--test", default="test_2016_flickr")
    parser.add_argument("--updates", type=int, default=200, help="number of updates for each direction")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=4_000)
    parser.add_argument("--batch-tokens", type=int, default=1_024)
    parser.add_argument("--out", type=Path, help="folder of the runs (default: a temporary one)")
    tiny = {"updates": 2, "width": 16, "vocabulary": 300, "valid": "valid", "test": "test", "languages": ["de"]}
    return machine.parse(parser, tiny=tiny, required=["root"])


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        if arguments.root is None:
            arguments.root = str(write_pairs(Path(folder)))
        assert not arguments.tiny or "de" in WORDS
        result = measure(arguments, arguments.out or Path(folder) / "runs")
    print(json.dumps({"unit": "BLEU", **result, **machine.about()}))


if __name__ == "__main__":
    main()
