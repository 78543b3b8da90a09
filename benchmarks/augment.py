"""Train a recipe with and without the settings of `init --data` for text that people type, with several seeds.

The settings are `data.augment`, `tokenizer.split_digits`, `search.copy_literals` and `search.lower_capitals`.

    python benchmarks/augment.py --root data/tatoeba-de-en [--recipe tatoeba-de-en] [--seeds 1 2 3] [--json]
        [--arms plain digits quarter half cut augmented]

`digits` has `split_digits` alone; `quarter` and `half` augment a quarter and half as many pairs; `cut` is trained
without the symbols that keep a sentence whole, so that search cuts it at its literals.

Each arm is trained by benchmarks/quality.py with the settings of the recipe (tatoeba-de-en: 20 minutes), scored on
clean text, and given the made-up inputs of `manyheads doctor RUN --challenge`: 500 single words that are no line of
the training text, and 100 lines of each other kind; and the sentences of the test set that share a name or a number
with their reference, with {name} in its place on both sides. Figures are means over the seeds: shares from 0 to 1,
and sacreBLEU of the test set with the recipe's beam. Below the table, the targets and whether they are met. Runs
are kept under --out; finished runs are only scored again. `--set data.test=dev` names the test set of a folder.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import machine
from bitext.pairs import Pair
from manyheads.config.load import with_overrides
from manyheads.data.training_text import available_pairs
from manyheads.evaluation.scores import metrics
from manyheads.inference.translation.translator import Translator
from manyheads.runs.challenge import challenge_run
from tiny import SMALLEST, write_pairs

TYPED = ["tokenizer.split_digits=true", "search.copy_literals=true", "search.lower_capitals=true"]
ARMS = {
    "plain": ["data.augment=none"],
    "digits": ["data.augment=none", "tokenizer.split_digits=true"],
    "quarter": ["data.augment=0.25", *TYPED],
    "half": ["data.augment=0.5", *TYPED],
    "cut": ["data.augment=1", *TYPED, "search.copy_literals=false"],
    "augmented": ["data.augment=1", *TYPED],
}
INSIDE = "texts inside of sentences: kept once each, sentence not cut"
MOST_TEST = 10_000  # pairs of the test set
NAME = re.compile(r"\b(?:[A-Z]\w{2,}|\d{2,})\b")
ODD, KEPT, RATIO = "repeated or longer than 3 words", "kept", "chrF, compared with the usual form"
COPIED = ("URLs", "numbers", "emoji")


def with_placeholders(pairs: Iterable[Pair]) -> Iterator[tuple[str, str]]:
    """Yield the pairs in which a name or number occurs once on both sides, with a placeholder in its place."""
    for pair in pairs:
        words = [NAME.findall(side) for side in (pair.source, pair.target)]
        shared = [word for word in words[0] if words[0].count(word) == 1 == words[1].count(word)]
        if shared:
            pattern = rf"\b{shared[0]}\b"
            yield re.sub(pattern, "{name}", pair.source), re.sub(pattern, "{name}", pair.target)


def score_placeholders(run: Path, overrides: list[str]) -> dict[str, float]:
    """Return chrF and the share of whole sentences of `with_placeholders`; nothing without such sentences."""
    loaded = Translator.load(run)
    config = with_overrides(loaded.config, overrides)
    rows = [*with_placeholders(available_pairs(config, "test", MOST_TEST))]
    if not rows:
        return {}
    results = replace(loaded, config=config).translate([source for source, _ in rows])
    outputs, references = [result.translation for result in results], [target for _, target in rows]
    return {
        "names as placeholders: sentences": len(rows),
        "names as placeholders: chrF": metrics("none")["chrf"].corpus_score(outputs, [references]).score,
        "names as placeholders: sentence not cut": sum(result.sentences == 1 for result in results) / len(rows),
    }


def train_and_score(arm: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one arm with one seed, score it on clean text, and translate the made-up inputs."""
    out = arguments.out / arm
    changes = [*ARMS[arm], *arguments.overrides, *(SMALLEST if arguments.tiny else ())]
    settings = [part for setting in changes for part in ("--set", setting)]
    command = [sys.executable, str(Path(__file__).with_name("quality.py")), arguments.recipe, "--json"]
    command += ["--root", str(arguments.root), "--out", str(out), "--seeds", str(seed), *settings]
    completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    clean = json.loads(completed.stdout)["rows"][0]
    run = out / f"{Path(arguments.recipe).stem}-{seed}"
    overrides = [f"data.root={arguments.root}", *(["search.copy_literals=true"] if arm == "cut" else [])]
    challenge = challenge_run(
        run,
        overrides=overrides,
        words=arguments.words,
        lines=arguments.lines,
    )
    groups = {group.name: {figure.name: figure.value for figure in figures} for group, figures in challenge.results}
    row = {"BLEU": clean["beam BLEU"], "chrF": clean["beam chrF"], "updates": clean["steps"]}
    row |= {
        f"{name}: {figure}": round(value, 4)
        for name, figures in groups.items()
        for figure, value in figures.items()
    }
    row |= {name: round(value, 4) for name, value in score_placeholders(run, overrides).items()}
    lines = {group.name: len(group.cases) for group, _ in challenge.results}
    copied = sum(groups[name][KEPT] * lines[name] for name in COPIED) / sum(lines[name] for name in COPIED)
    row |= {f"{', '.join(COPIED)}: {KEPT}": round(copied, 4), "signature": clean["signature"], "seed": seed}
    return row


def targets(means: dict[str, dict[str, float]]) -> Iterator[tuple[str, float, bool]]:
    """Yield each target of the augmented arm, its figure, and whether it is met."""
    plain, augmented = means["plain"], means["augmented"]
    odd = augmented.get(f"single words: {ODD}", 1.0)
    yield "single words repeated or longer than 3 words, at most 0.01", odd, odd <= 0.01
    kept = augmented[f"{', '.join(COPIED)}: {KEPT}"]
    yield "URLs, numbers, emoji kept, at least 0.98", kept, kept >= 0.98
    ratio = augmented.get(f"capitals: {RATIO}", 0.0)
    yield "chrF of capitals over that of normal text, at least 0.9", ratio, ratio >= 0.9
    lost = round(plain["BLEU"] - augmented["BLEU"], 2)
    yield "clean BLEU lost, at most 0.3", lost, lost <= 0.3
    whole = augmented[INSIDE]
    yield "texts inside of sentences kept once each in a whole sentence, at least 0.98", whole, whole >= 0.98
    if "cut" in means:
        lost = round(means["cut"]["BLEU"] - augmented["BLEU"], 2)
        yield "clean BLEU lost to the symbols, at most 0.3", lost, lost <= 0.3


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--recipe", default="tatoeba-de-en")
    parser.add_argument("--root")
    parser.add_argument("--arms", nargs="+", default=["plain", "augmented"], choices=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--words", type=int, default=500, help="single words (default 500)")
    parser.add_argument("--lines", type=int, default=100, help="lines of each other kind (default 100)")
    parser.add_argument("--out", type=Path, default=Path("runs/augment"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="SECTION.KEY=VALUE")
    tiny = {"recipe": "multi30k-en-de", "seeds": [1], "words": 5, "lines": 4}
    arguments = machine.parse(parser, tiny=tiny, required=["root"])
    with tempfile.TemporaryDirectory() as folder:
        if arguments.root is None:
            arguments.root, arguments.out = write_pairs(Path(folder), valid="val"), Path(folder)
        rows = {arm: [train_and_score(arm, seed, arguments) for seed in arguments.seeds] for arm in arguments.arms}
    names = [
        name
        for name, value in next(iter(rows.values()))[0].items()
        if isinstance(value, int | float) and name != "seed"
    ]
    means = {
        arm: {name: round(statistics.mean(row[name] for row in arm_rows), 4) for name in names}
        for arm, arm_rows in rows.items()
    }
    judged_targets = [
        {"target": description, "value": value, "met": met}
        for description, value, met in (targets(means) if {"plain", "augmented"} <= rows.keys() else ())
    ]
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "share, BLEU", **about, "rows": rows, "mean": means, "targets": judged_targets}))
        return
    print(f"{machine.describe(about)}\n")
    print(f"| figure | {' | '.join(rows)} |\n| --- | {' | '.join('---' for _ in rows)} |")
    for name in names:
        print(f"| {name} | {' | '.join(f'{means[arm][name]:.3f}' for arm in rows)} |")
    print()
    for target in judged_targets:
        print(f"{'met' if target['met'] else 'NOT met'}: {target['target']}: {target['value']}")


if __name__ == "__main__":
    main()
