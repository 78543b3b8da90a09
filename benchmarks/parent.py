"""Train a translator with little text from nothing, and from a parent of another language with much text.

    python benchmarks/parent.py --parent data/tatoeba-de-en --child data/tatoeba-ko-en [--seeds 1 2 3]

The parent, German-English, is trained first, with the shape of the child. Then each seed trains two children
with equal settings and updates: without a parent, and from it, by `model.init_from` with `init_vocabulary =
"replace"`, which keeps the rows of equally spelled pieces. The pairs of the child's folder (train and dev) are
shuffled: the first `--held-out` are its test set, the next ones its validation text. Printed are sacreBLEU and chrF
of every child with the recipe's beam, and the means. Finished runs under --out are only scored again.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from statistics import fmean

from harness import Document, main, option
from manyheads.runs.evaluate import evaluate
from material import SMALLEST, named, out, read_rows, train_recipe, write, write_dev_pairs

VALID = 200  # pairs of the child's validation text, a tenth of the training text at most
COMMON = ("training.max_minutes=none", "training.valid_sentences=0", "data.train=train", "data.valid=valid")
Pair = tuple[str, ...]


def pairs_of(root: Path, source: str) -> list[Pair]:
    parts = [[next(root.glob(f"{name}.{language}*")) for language in (source, "en")] for name in ("train", "dev")]
    return [pair for files in parts for pair in read_rows(files)]


def write_parts(folder: Path, source: str, parts: dict[str, list[Pair]]) -> None:
    for name, pairs in parts.items():
        for language, lines in zip((source, "en"), zip(*pairs, strict=True), strict=True):
            write(folder / f"{name}.{language}", lines)


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
    write_parts(folder / "child", arguments.languages[1], parts)
    hidden = {english for _, english in parts["test"]}
    parent = [pair for pair in pairs_of(arguments.parent, arguments.languages[0]) if pair[1] not in hidden]
    valid = min(1_000, len(parent) // 10)
    write_parts(folder / "parent", arguments.languages[0], {"valid": parent[:valid], "train": parent[valid:]})
    return {"parent": len(parent) - valid, **{name: len(part) for name, part in parts.items()}}


def train_model(arguments: argparse.Namespace, name: str, run: Path, *changes: str) -> Path:
    """Train the recipe for the child, with the text and the languages of the folder `name`."""
    text = (
        f"data.root={arguments.out / name}",
        f"data.source={arguments.languages[name == 'child']}",
        f"data.test={'test' if name == 'child' else 'none'}",
    )
    tiny = [setting for setting in SMALLEST if not setting.startswith("data.")] if arguments.tiny else ()
    train_recipe(arguments.recipe, [*text, *COMMON, *changes, *tiny], run)
    return run


def measure(arguments: argparse.Namespace) -> Document:
    numbers, rows = write_text(arguments, arguments.out), []
    parent = train_model(
        arguments,
        "parent",
        arguments.out / "parent run",
        f"tokenizer.vocab_size={arguments.vocabulary}",
        f"training.batch_tokens={arguments.batch_tokens}",
        f"training.steps={arguments.parent_updates}",
        "model.dropout=0.1",
        "tokenizer.sampling=0",
    )
    ways = {"none": (), "parent": (f"model.init_from={parent}", "model.init_vocabulary=replace")}
    for seed in arguments.seeds:
        for way, start in ways.items():
            updates = f"training.steps={arguments.updates}"
            run = arguments.out / f"{way} {seed}"
            train_model(arguments, "child", run, updates, f"training.seed={seed}", *start)
            scores = evaluate(run).to_json()
            rows.append({"start": way, "seed": seed, "BLEU": scores["bleu"], "chrF": scores["chrf"]})
            print(rows[-1])
    means = {
        way: {metric: fmean(row[metric] for row in rows if row["start"] == way) for metric in ("BLEU", "chrF")}
        for way in ways
    }
    return {"pairs": numbers, "rows": rows, "means": means}


OPTIONS = {
    "--parent": option(Path, "folder of the parent's text", tiny=write_dev_pairs, required=True),
    "--child": option(Path, "folder of the child's text", tiny=named("."), required=True),
    "--languages": option(["de", "ko"], "source languages of parent and child", tiny=["de", "de"]),
    "--recipe": option("tatoeba-ko-en", "settings of the child, and the shape of both"),
    "--held-out": option(1_500, "pairs of the child's test set", tiny=20),
    "--seeds": option([1, 2, 3], "seeds", tiny=[1]),
    "--updates": option(1_200, "updates of a child", tiny=2),
    "--parent-updates": option(1_500, "updates of the parent", tiny=2),
    "--batch-tokens": option(4_096, "target tokens of an update of the parent"),
    "--vocabulary": option(8_000, "pieces of the parent", tiny=300),
    "--out": out("runs/parent"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU")
