"""Measure `manyheads tune`: what a translator gains on corrections, what it keeps, and which sets are refused.

    python benchmarks/tune.py RUN --domain train.de.gz train.en.gz --domain-test dev.de.gz dev.en.gz
        [--parts domain corrections few harmful] [--pairs 2000] [--json]

RUN is a German-English run of Multi30k whose text is on this machine. Parts:

- domain: --pairs pairs of another domain, scored on its test text: with replay, from an int8 export of RUN, and
  without replay
- corrections: 200 outputs of the model with other words for some nouns, and with names; the share of these sources
  that come out with all of them afterwards, and BLEU of general text as it is and with the old nouns put back
- few: the time for 50 pairs of the other domain
- harmful: 20 sets of corrections that would make the model worse, each of which must be refused

BLEU is that of the proof, on the test text of RUN.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness import FOLDER, Document, main, option
from manyheads.checkpoint import RunDirectory
from manyheads.data.training_text import available_pairs
from manyheads.errors import ManyheadsError
from manyheads.evaluation import score
from manyheads.improve.tune import Tuning, tune
from manyheads.inference.translation.translator import Translator
from manyheads.runs.export import export
from material import RUN, read_rows, translations, write

Texts = list[tuple[str, str]]
TABLES = tomllib.loads((FOLDER / "tune.toml").read_text(encoding="utf-8"))
TERMS: dict[str, str] = TABLES["terms"]  # English word -> the word that a user wants in its place
NAMES: dict[str, str] = TABLES["names"]  # source and target of a name that takes the place of a man
FRENCH: list[str] = TABLES["french"]


def outputs_of(run: Path, sources: Sequence[str]) -> list[str]:
    return translations(Translator.load(run, device="cpu"), sources)


def bleu(run: Path, pairs: Texts) -> float:
    sources, references = zip(*pairs, strict=True)
    return score(outputs_of(run, sources), references).bleu


def tuned(model: Path, pairs: Texts, folder: Path, **options: Any) -> tuple[Tuning, dict[str, Any]]:
    """Tune, and return the result and its figures."""
    corrections = write(folder / "corrections.tsv", map("\t".join, pairs))
    start = time.perf_counter()
    result = tune(str(model), corrections, folder / "tuned", device="cpu", **options)
    seconds, proof = time.perf_counter() - start, result.proof
    row = {
        "used": not result.exit_code,
        "seconds": round(seconds),
        "minutes": round(seconds / 60, 2),
        "taken_up": proof.get("taken_up"),
        "reasons": proof["reasons"],
    }
    for name in ("held_out", "corrections", "general"):
        if name not in proof:
            continue
        found = proof[name]["bleu"]
        row[name] = {"before": round(found["baseline"], 2), "after": round(found["score"], 2)}
    return result, row


def measure_domain(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    pairs = read_rows(arguments.domain, arguments.pairs)
    test = read_rows(arguments.domain_test, arguments.lines)
    before = bleu(arguments.run, test)
    export(arguments.run, folder / "int8", "ctranslate2", quantization="int8")
    rows = {}
    for name, model, replay in (
        ("with replay", arguments.run, True),
        ("from an int8 export", folder / "int8", True),
        ("without replay", arguments.run, False),
    ):
        result, row = tuned(model, pairs, folder / name, replay=replay)
        rows[name] = row | {"domain": {"before": before, "after": bleu(result.kept or arguments.run, test)}}
        print(name, rows[name])
    return rows


# --- corrections ---


def corrected_outputs(arguments: argparse.Namespace, most: int) -> tuple[Texts, list[set[str]]]:
    """Return sources with corrected outputs of the model, and the words that each correction brings."""
    config = RunDirectory.existing(arguments.run).config()
    pairs = available_pairs(config, "valid", 5_000)
    rng, names = random.Random(1), list(NAMES.items())
    found: Texts = []
    wanted: list[set[str]] = []
    outputs = outputs_of(arguments.run, [pair.source for pair in pairs])
    for pair, text in zip(pairs, outputs, strict=True):
        words = {TERMS[word] for word in re.findall(r"[a-z]+", text) if word in TERMS}
        if words:
            found.append((pair.source, with_words(text, TERMS)))
            wanted.append(words)
    named = [
        (pair.source, text)
        for pair, text in zip(pairs, outputs, strict=True)
        if pair.source.startswith("Ein Mann ") and text.startswith("A man ")
    ]
    for source, text in rng.sample(named, min(len(named), most - len(found))):
        german, english = names[len(found) % len(names)]
        found.append((source.replace("Ein Mann", german, 1), text.replace("A man", english, 1)))
        wanted.append({*english.split()})
    return found, wanted


def with_words(text: str, words: dict[str, str]) -> str:
    return re.sub(r"[a-z]+", lambda match: words.get(match[0], match[0]), text)


def share_right(run: Path, pairs: Texts, wanted: Sequence[set[str]]) -> float:
    """Return the share of sources whose translation has all the wanted words."""
    outputs = outputs_of(run, [source for source, _ in pairs])
    right = [words <= {*re.findall(r"\w+", output)} for words, output in zip(wanted, outputs, strict=True)]
    return sum(right) / max(1, len(right))


def measure_corrections(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    pairs, wanted = corrected_outputs(arguments, 200)
    result, row = tuned(arguments.run, pairs, folder)
    runs = {"before": arguments.run, "after": result.kept or arguments.run}
    row["right"] = {name: share_right(run, pairs, wanted) for name, run in runs.items()}
    row["old nouns put back"] = {name: put_back(run) for name, run in runs.items()}
    return {"200 corrections": row | {"pairs": len(pairs)}}


def put_back(run: Path) -> float:
    """Return BLEU of the test text of the general run, with the old nouns in the place of the planted ones."""
    old = {new: word for word, new in TERMS.items()}
    pairs = available_pairs(RunDirectory.existing(run).config(), "test", 1_000)
    outputs = [with_words(text, old) for text in outputs_of(run, [pair.source for pair in pairs])]
    return round(score(outputs, [pair.target for pair in pairs]).bleu, 2)


# --- harmful sets ---


def shuffled(rng: random.Random, pairs: Texts) -> Texts:
    targets = [target for _, target in pairs]
    return [(source, target) for (source, _), target in zip(pairs, rng.sample(targets, len(targets)), strict=True)]


def each(change: Callable[[random.Random, str, str], str], share: float = 1.0) -> Callable[..., Texts]:
    """Return the change of a share of the targets."""

    def changed(rng: random.Random, pairs: Texts) -> Texts:
        return [
            (source, change(rng, source, target) if rng.random() < share else target) for source, target in pairs
        ]

    return changed


def cut(rng: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join(words[: max(1, len(words) // 3)])


def noise(rng: random.Random, source: str, target: str) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in target.split())


def mixed(rng: random.Random, source: str, target: str) -> str:
    words = target.split()
    return " ".join(rng.sample(words, len(words)))


def spelled(rng: random.Random, source: str, target: str) -> str:
    letters = list(target)
    for index in range(1, len(letters) - 1):
        if rng.random() < 0.15:
            letters[index] = rng.choice("abcdefghijklmnopqrstuvwxyz")
    return "".join(letters)


def half_shuffled(rng: random.Random, pairs: Texts) -> Texts:
    middle = len(pairs) // 2
    return [*shuffled(rng, pairs[:middle]), *pairs[middle:]]


def next_target(rng: random.Random, pairs: Texts) -> Texts:
    targets = [target for _, target in pairs]
    return [(source, target) for (source, _), target in zip(pairs, [*targets[1:], targets[0]], strict=True)]


HARMFUL: dict[str, Callable[[random.Random, Texts], Texts]] = {
    "targets shuffled": shuffled,
    "half of the targets shuffled": half_shuffled,
    "targets one line late": next_target,
    "sides exchanged": lambda rng, pairs: [(target, source) for source, target in pairs],
    "source copied": each(lambda rng, source, target: source),
    "half of the sources copied": each(lambda rng, source, target: source, 0.5),
    "source in capitals": each(lambda rng, source, target: source.upper()),
    "another language": each(lambda rng, source, target: " ".join(rng.choices(FRENCH, k=len(target.split())))),
    "another script": each(lambda rng, source, target: "".join(rng.choices("абвгдежзиклмнопрст ", k=30))),
    "first third alone": each(cut),
    "first third of half": each(cut, 0.5),
    "one target for all": lambda rng, pairs: [(source, pairs[0][1]) for source, _ in pairs],
    "three targets for all": lambda rng, pairs: [(source, pairs[rng.randrange(3)][1]) for source, _ in pairs],
    "made-up words": each(noise),
    "words in any order": each(mixed),
    "wrong letters": each(spelled),
    "one letter": each(lambda rng, source, target: "aaaaaa"),
    "said twice": each(lambda rng, source, target: f"{target} {target}"),
    "without capitals and marks": each(lambda rng, source, target: re.sub(r"[^\w ]", "", target.lower())),
    "everything in capitals": each(lambda rng, source, target: target.upper()),
}  # fmt: skip


def measure_harmful(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    config = RunDirectory.existing(arguments.run).config()
    pairs = [(pair.source, pair.target) for pair in available_pairs(config, "valid", 5_000)][: arguments.harmful]
    rows = {}
    for name, change in HARMFUL.items():
        try:
            rows[name] = tuned(arguments.run, change(random.Random(1), pairs), folder / name)[1]
        except ManyheadsError as error:
            rows[name] = {"used": False, "reasons": [str(error)]}
        rows[name] |= {"refused": not rows[name]["used"]}
        print(name, rows[name])
    return rows


MEASURES = {
    "domain": measure_domain,
    "corrections": measure_corrections,
    "few": lambda arguments, folder: {"50 pairs": tuned(arguments.run, read_rows(arguments.domain, 50), folder)[1]},
    "harmful": measure_harmful,
}


def measure(arguments: argparse.Namespace) -> Document:
    rows = {}
    for part in arguments.parts:
        rows[part] = MEASURES[part](arguments, (arguments.out or arguments.folder) / part)
        print(part, rows[part])
    return {"rows": rows}


def tiny_files(folder: Path) -> list[Path]:
    return [folder / "test.de", folder / "test.en"]


OPTIONS = {
    "run": RUN,
    "--domain": option(Path, "text of another domain", nargs=2, tiny=tiny_files, required=True),
    "--domain-test": option(Path, "its test text", nargs=2, tiny=tiny_files, required=True),
    "--parts": option(list(MEASURES), "parts to measure", choices=MEASURES, tiny=["domain", "few"]),
    "--pairs": option(2_000, "pairs of the other domain"),
    "--lines": option(1_000, "lines of its test text"),
    "--harmful": option(200, "pairs of a harmful set"),
    "--out": option(Path, "folder to keep the runs in (default: a temporary one)"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU, seconds, shares")
