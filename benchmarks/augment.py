"""Train a recipe with and without the settings of `init --data` for text that people type, with several seeds.

The settings are `data.augment`, `tokenizer.split_digits`, `search.copy_literals` and `search.lower_capitals`.

    python benchmarks/augment.py --root data/tatoeba-de-en [--recipe tatoeba-de-en] [--seeds 1 2 3] [--json]
        [--arms plain digits quarter half cut augmented]

`digits` has `split_digits` alone; `quarter` and `half` augment a quarter and half as many pairs; `cut` is trained
without the symbols that keep a sentence whole, so that search cuts it at its literals.

Each arm is trained as by benchmarks/quality.py, with the settings of the recipe (tatoeba-de-en: 20 minutes), scored
on clean text, and given the made-up inputs of `manyheads doctor RUN --challenge`: 500 single words that are no line
of the training text, and 100 lines of each other kind; and the sentences of the test set that share a name or a
number with their reference, with {name} in its place on both sides. Figures are means over the seeds: shares from 0
to 1, and sacreBLEU of the test set with the recipe's beam. Runs are kept under --out; finished runs are only scored
again. `--set data.test=dev` names the test set of a folder.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bitext.pairs import Pair
from harness import Document, main, option, over_seeds, settings
from manyheads.config.load import with_overrides
from manyheads.data.training_text import available_pairs
from manyheads.evaluation.scores import metrics
from manyheads.inference.translation.translator import Translator
from manyheads.runs.challenge import challenge_run
from material import ROOT, SMALLEST, out
from quality import train_and_score

TYPED = ["tokenizer.split_digits=true", "search.copy_literals=true", "search.lower_capitals=true"]
ARMS = {
    "plain": ["data.augment=none"],
    "digits": ["data.augment=none", "tokenizer.split_digits=true"],
    "quarter": ["data.augment=0.25", *TYPED],
    "half": ["data.augment=0.5", *TYPED],
    "cut": ["data.augment=1", *TYPED, "search.copy_literals=false"],
    "augmented": ["data.augment=1", *TYPED],
}
MOST_TEST = 10_000  # pairs of the test set
NAME = re.compile(r"\b(?:[A-Z]\w{2,}|\d{2,})\b")
KEPT = "kept"
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
    results = loaded.copy(config=config).translate([source for source, _ in rows])
    outputs, references = [result.translation for result in results], [target for _, target in rows]
    return {
        "names as placeholders: sentences": len(rows),
        "names as placeholders: chrF": metrics("none")["chrf"].corpus_score(outputs, [references]).score,
        "names as placeholders: sentence not cut": sum(result.sentences == 1 for result in results) / len(rows),
    }


def measure_arm(arm: str, seed: int, arguments: argparse.Namespace) -> Document:
    """Train one arm with one seed, score it on clean text, and translate the made-up inputs."""
    run = arguments.out / arm / f"{Path(arguments.recipe).stem}-{seed}"
    clean = train_and_score(arguments.recipe, arguments.root, run, [*ARMS[arm], *arguments.overrides], seed)
    overrides = [f"data.root={arguments.root}", *(["search.copy_literals=true"] if arm == "cut" else [])]
    challenge = challenge_run(run, overrides=overrides, words=arguments.words, lines=arguments.lines)
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
    return row | {f"{', '.join(COPIED)}: {KEPT}": round(copied, 4), "signature": clean["signature"], "seed": seed}


def measure(arguments: argparse.Namespace) -> Document:
    rows = {arm: [measure_arm(arm, seed, arguments) for seed in arguments.seeds] for arm in arguments.arms}
    means = {arm: over_seeds(own)["mean"] for arm, own in rows.items()}
    names = means[arguments.arms[0]]
    return {"rows": rows, "mean": {name: {arm: own.get(name) for arm, own in means.items()} for name in names}}


OPTIONS = {
    "--recipe": option("tatoeba-de-en", "recipe", tiny="multi30k-en-de"),
    "--root": ROOT,
    "--arms": option(["plain", "augmented"], "arms to train", choices=list(ARMS)),
    "--seeds": option([1, 2, 3], "seeds", tiny=[1]),
    "--words": option(500, "single words", tiny=5),
    "--lines": option(100, "lines of each other kind", tiny=4),
    "--out": out("runs/augment"),
    "--set": settings(SMALLEST),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share, BLEU")
