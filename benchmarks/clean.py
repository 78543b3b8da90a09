"""Measure `manyheads data clean` on a corpus with planted noise: what it finds, what it loses, how fast it is.

    python benchmarks/clean.py --data DIR [--corpus tatoeba-de-en] [--foreign multi30k] [--parts rates trainings]
        [--languages de en] [--pairs N] [--steps 2500] [--width N] [--out DIR] [--json]

DIR holds folders of corpora, each with train.{language}.gz. Of the pairs, 20 % get the target of another pair, and
5 % each are copies, have a side in French or Czech, have a side that is cut, or are misread UTF-8. Parts:
    rates       share of each class that is found, share of clean pairs that is lost; pairs a second of one core,
                reading and writing counted, with the rules alone and with the lexical score
    trainings   BLEU of --recipe trained on the clean, the dirty and the cleaned text, each with --steps updates
The defaults were chosen on this corpus, so its figures are no held-out ones.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

from harness import Document, main, manyheads, option, with_settings
from material import read_rows, write, write_dev_pairs

SHUFFLED_SHARE, NOISE_SHARE = 0.2, 0.05
CODECS = ("latin-1", "cp1252")
Pairs = list[tuple[str, str]]


def cut(text: str, rng: random.Random) -> str:
    """Return the start of a text: a fifth to three fifths of its words, or half of its letters."""
    words = text.split()
    if len(words) < 3:
        return text[: max(1, len(text) // 2)].strip()
    return " ".join(words[: rng.randint(max(1, len(words) // 5), max(1, int(len(words) * 0.6)))])


def plant_noise(pairs: Pairs, foreign: list[str], seed: int) -> tuple[Pairs, list[str]]:
    """Return a copy of the pairs with planted noise, and the class of each pair."""
    rng, pairs, classes = random.Random(seed), list(pairs), ["clean"] * len(pairs)
    order = rng.sample(range(len(pairs)), len(pairs))
    shuffled_count, noise_count = int(SHUFFLED_SHARE * len(pairs)), int(NOISE_SHARE * len(pairs))
    shuffled, rest = order[:shuffled_count], iter(order[shuffled_count:])
    targets = [pairs[index][1] for index in shuffled]
    for index, target in zip(shuffled, targets[1:] + targets[:1], strict=True):
        pairs[index], classes[index] = (pairs[index][0], target), "shuffled"
    for noise in ("copy", "language", "cut", "encoding"):
        remaining = noise_count
        while remaining and (index := next(rest, None)) is not None:
            source, target = pairs[index]
            on_source_side = rng.random() < 0.5
            match noise:
                case "copy":
                    pairs[index] = (source, source) if on_source_side else (target, target)
                case "language":
                    line = rng.choice(foreign)
                    pairs[index] = (source, line) if on_source_side else (line, target)
                case "cut":
                    pairs[index] = (cut(source, rng), target) if on_source_side else (source, cut(target, rng))
                case _:
                    codec = rng.choice(CODECS)
                    pairs[index] = tuple(text.encode().decode(codec, errors="replace") for text in pairs[index])
                    if pairs[index] == (source, target):
                        continue
            classes[index], remaining = noise, remaining - 1
    return pairs, classes


def write_corpus(folder: Path, pairs: Pairs, languages: Sequence[str]) -> Path:
    for side, language in enumerate(languages):
        write(folder / f"train.{language}", (pair[side].replace("\n", " ") for pair in pairs))
    source, target = languages
    text = ["[data]", f'root = "{folder}"', f'source = "{source}"', f'target = "{target}"']
    return write(folder / "clean.toml", text)


def clean_seconds(config: Path, out: Path, *settings: str) -> float:
    """Run `manyheads data clean` in this process; return the processor seconds."""
    import manyheads.runs.clean  # noqa: F401  # so that the import is not timed
    from manyheads.cli.main import run

    start = time.process_time()
    assert run(["-q", "data", "clean", str(config), "-o", str(out), *with_settings(settings)]) == 0
    return time.process_time() - start


def measure_rates(folder: Path, pairs: Pairs, classes: list[str], languages: Sequence[str]) -> Document:
    """Return the share of each class that was removed, and the speed."""
    config = write_corpus(folder, pairs, languages)
    rules = clean_seconds(config, folder / "rules", "clean.loss=0")
    lexical = clean_seconds(config, folder / "lexical")
    with gzip.open(folder / "lexical" / "removed.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        removed = {int(line.split("\t")[5]) - 1 for line in file.read().split("\n")[1:-1]}
    short = [min(len(source.split()), len(target.split())) < 4 for source, target in pairs]
    shares = {}
    for noise in sorted(set(classes)):
        members = [index for index, name in enumerate(classes) if name == noise]
        shares[noise] = sum(index in removed for index in members) / len(members)
    short_clean = [index for index, name in enumerate(classes) if name == "clean" and short[index]]
    shares["clean, under four words"] = sum(index in removed for index in short_clean) / max(1, len(short_clean))
    return {
        "removed": {name: round(share, 4) for name, share in shares.items()},
        "pairs a second": {"rules": round(len(pairs) / rules), "with lexical score": round(len(pairs) / lexical)},
    }


def measure_trainings(source: Path, clean: Pairs, dirty: Pairs, arguments: argparse.Namespace) -> dict[str, float]:
    folder, languages = arguments.out or arguments.folder, arguments.languages
    write_corpus(folder / "clean", clean, languages)
    clean_seconds(write_corpus(folder / "dirty", dirty, languages), folder / "cleaned")
    dev = json.dumps([str(next(source.glob(f"dev.{language}*")).resolve()) for language in languages])
    steps = [f"training.steps={arguments.steps}", "training.max_minutes=none", f"training.seed={arguments.seed}"]
    if arguments.width:
        steps += [f"model.d_model={arguments.width}", f"model.d_ff={4 * arguments.width}"]
    results = {}
    for name in ("clean", "dirty", "cleaned"):
        settings = with_settings([f"data.root={folder / name}", f"data.valid={dev}", f"data.test={dev}", *steps])
        run = folder / f"run-{name}"
        manyheads("-q", "train", arguments.recipe, "-o", run, *settings)
        results[name] = manyheads("-q", "evaluate", run)["bleu"]
    return results


def load_corpus(arguments: argparse.Namespace) -> tuple[Path, Pairs, list[str]]:
    source, languages = arguments.data / arguments.corpus, arguments.languages
    pairs = read_rows([next(source.glob(f"train.{language}*")) for language in languages])
    if arguments.tiny:
        return source, pairs, ["Un homme est dans la rue et il parle avec une femme."]
    third = sorted({"fr", "cs"} - {*languages})
    files = [next((arguments.data / arguments.foreign).glob(f"train.{language}*")) for language in third]
    return source, pairs[: arguments.pairs], [line for file in files for (line,) in read_rows([file])]


def measure(arguments: argparse.Namespace) -> Document:
    arguments.languages = arguments.languages or arguments.corpus.removesuffix("-20k").split("-")[-2:]
    source, pairs, foreign = load_corpus(arguments)
    dirty, classes = plant_noise(pairs, foreign, arguments.seed)
    document: Document = {"corpus": arguments.corpus, "pairs": len(pairs)}
    if "rates" in arguments.parts:
        document["rates"] = measure_rates(arguments.folder / "rates", dirty, classes, arguments.languages)
    if "trainings" in arguments.parts:
        document["BLEU"] = measure_trainings(source, pairs, dirty, arguments)
    return document


OPTIONS = {
    "--data": option(Path, "folder of the corpora", tiny=write_dev_pairs, required=True),
    "--corpus": option("tatoeba-de-en", "corpus to plant noise in", tiny="."),
    "--languages": option(str, "source and target (default: by the corpus)", nargs=2, tiny=["de", "en"]),
    "--foreign": option("multi30k", "corpus with train.fr.gz and train.cs.gz"),
    "--parts": option(["rates"], "parts to measure", choices=["rates", "trainings"]),
    "--pairs": option(100_000, "pairs"),
    "--seed": option(1, "seed of the noise and of the trainings"),
    "--recipe": option("tatoeba-de-en", "recipe of the trainings"),
    "--width": option(int, "model.d_model of the trainings (default: that of the recipe)"),
    "--steps": option(2_500, "updates of each training"),
    "--out": option(Path, "folder to keep the trainings in (default: a temporary one)"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share, pairs/s", packages=["numpy"], threads=1)
