"""Train a translator with little text from nothing, and from a parent of another language with much text.

    python benchmarks/parent.py --parent data/tatoeba-de-en --child data/tatoeba-ko-en [--seeds 1 2 3]

The parent, German-English, is trained first, with the shape of the child. Then each seed trains two children
with equal settings and updates: without a parent, and from it, by `model.init_from` with `init_vocabulary =
"replace"`, which keeps the rows of equally spelled pieces. The pairs of the child's folder (train and dev) are
shuffled: the first `--held-out` are its test set, the next ones its validation text. Printed are sacreBLEU and chrF
of every child with the recipe's beam, and the means. Finished runs under --out are only scored again. One JSON line
at the end, all else on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

import machine
from bitext.lines import read_lines
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.reports import SilentListener
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train
from tiny import SMALLEST, write_pairs

VALID = 200  # pairs of the child's validation text, a tenth of the training text at most
COMMON = ("training.max_minutes=none", "training.valid_sentences=0", "data.train=train", "data.valid=valid")
Pair = tuple[str, ...]


def pairs_of(root: Path, source: str) -> list[Pair]:
    """Read the pairs of a folder, source and English, of train and dev."""
    sides = [
        [line for name in ("train", "dev") for line in read_lines(next(root.glob(f"{name}.{language}*")))]
        for language in (source, "en")
    ]
    return list(zip(*sides, strict=True))


def write(folder: Path, source: str, parts: dict[str, list[Pair]]) -> None:
    """Write pairs as the files of each part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in parts.items():
        for language, lines in zip((source, "en"), zip(*pairs, strict=True), strict=True):
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_text(arguments: argparse.Namespace, folder: Path) -> dict[str, int]:
    """Write the text of the child and of the parent; return the numbers of pairs.

    The parent sees no English line of the child's test set.
    """
    child = pairs_of(arguments.child, arguments.languages[1])
    random.Random(1).shuffle(child)
    train_from = arguments.held_out + min(VALID, len(child) // 10)
    parts = {
        "test": child[: arguments.held_out],
        "valid": child[arguments.held_out : train_from],
        "train": child[train_from:],
    }
    write(folder / "child", arguments.languages[1], parts)
    hidden = {english for _, english in parts["test"]}
    parent = [pair for pair in pairs_of(arguments.parent, arguments.languages[0]) if pair[1] not in hidden]
    valid = min(1_000, len(parent) // 10)
    write(folder / "parent", arguments.languages[0], {"valid": parent[:valid], "train": parent[valid:]})
    return {"parent": len(parent) - valid, **{name: len(part) for name, part in parts.items()}}


def settings(arguments: argparse.Namespace, name: str, *changes: str) -> Config:
    """Return the settings of the recipe for the child, with its text and languages in the folder `name`."""
    source = arguments.languages[name == "child"]
    text = (
        f"data.root={arguments.out / name}",
        f"data.source={source}",
        f"data.test={'test' if name == 'child' else 'none'}",
    )
    tiny = [setting for setting in SMALLEST if not setting.startswith("data.")] if arguments.tiny else ()
    return load_config(resolve_recipe(arguments.recipe), [*text, *COMMON, *changes, *tiny])


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train and score all children."""
    numbers, parent, rows = write_text(arguments, arguments.out), arguments.out / "parent run", []
    changes = f"tokenizer.vocab_size={arguments.vocabulary}", f"training.batch_tokens={arguments.batch_tokens}"
    updates = f"training.steps={arguments.parent_updates}"
    train(
        settings(arguments, "parent", *changes, updates, "model.dropout=0.1", "tokenizer.sampling=0"),
        parent,
        listener=SilentListener(),
    )
    ways = {"none": (), "parent": (f"model.init_from={parent}", "model.init_vocabulary=replace")}
    for seed in arguments.seeds:
        for way, start in ways.items():
            run = arguments.out / f"{way} {seed}"
            updates = f"training.steps={arguments.updates}"
            train(
                settings(arguments, "child", updates, f"training.seed={seed}", *start),
                run,
                listener=SilentListener(),
            )
            scores = evaluate(run).to_json()
            rows.append({"start": way, "seed": seed, "BLEU": scores["bleu"], "chrF": scores["chrf"]})
            print(rows[-1], flush=True)
    means = {
        way: {metric: fmean(row[metric] for row in rows if row["start"] == way) for metric in ("BLEU", "chrF")}
        for way in ways
    }
    return {"pairs": numbers, "rows": rows, "means": means}


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--parent", type=Path, help="folder with the text of the parent")
    parser.add_argument("--child", type=Path, help="folder with the text of the child")
    parser.add_argument("--languages", nargs=2, default=["de", "ko"], help="source languages of parent and child")
    parser.add_argument("--recipe", default="tatoeba-ko-en", help="settings of the child, and the shape of both")
    parser.add_argument("--held-out", type=int, default=1_500, help="pairs of the child's test set")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=1_200, help="updates of a child")
    parser.add_argument("--parent-updates", type=int, default=1_500)
    parser.add_argument("--batch-tokens", type=int, default=4_096, help="target tokens of an update of the parent")
    parser.add_argument("--vocabulary", type=int, default=8_000, help="pieces of the parent")
    parser.add_argument("--out", type=Path, help="folder of text and runs (default: a temporary one)")
    tiny = {
        "updates": 2,
        "parent_updates": 2,
        "vocabulary": 300,
        "held_out": 20,
        "seeds": [1],
        "languages": ["de", "de"],
    }
    arguments = machine.parse(parser, tiny=tiny, required=["parent", "child"])
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        arguments.out = arguments.out or Path(folder) / "runs"
        if arguments.tiny:
            text = Path(folder)
            arguments.parent = arguments.child = write_pairs(text, valid="dev")
        result = measure(arguments)
    print(json.dumps({"unit": "BLEU", **result, **machine.about()}))


if __name__ == "__main__":
    main()
