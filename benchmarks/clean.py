"""Measure `manyheads data clean` on a corpus with planted noise: what it finds, what it loses, how fast it is.

    python benchmarks/clean.py --data DIR [--corpus tatoeba-de-en] [--foreign multi30k] [--parts rates kills]
                               [--languages de en] [--pairs N] [--half 1] [--kills 50] [--steps 2500] [--width N]
                               [--out DIR] [--tiny] [--json]

DIR holds folders of corpora, each with train.{language}.gz. Of the pairs, 20 % get the target of another pair, and
5 % each are copies, have a side in French or Czech, have a side that is cut, or are misread UTF-8. Parts:
    rates       share of each class that is found, share of clean pairs that is lost; pairs a second of one core,
                reading and writing counted, with the rules alone and with the lexical score
    kills       kills the command with SIGKILL at random moments, then compares the files with an undisturbed run
    trainings   BLEU of --recipe trained on the clean, the dirty and the cleaned text, each with --steps updates
The defaults were chosen on this corpus, so its figures are no held-out ones; --half takes every second pair.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import tiny

PROGRAM = [sys.executable, "-m", "manyheads", "-q"]
SHUFFLED_SHARE, NOISE_SHARE = 0.2, 0.05
CODECS = ("latin-1", "cp1252")
Pairs = list[tuple[str, str]]


def read(folder: Path, language: str) -> list[str]:
    """Read the training text of a language."""
    with gzip.open(next(folder.glob(f"train.{language}.gz")), "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


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
                    pairs[index] = misread(source, codec), misread(target, codec)
                    if pairs[index] == (source, target):
                        continue
            classes[index], remaining = noise, remaining - 1
    return pairs, classes


def misread(text: str, codec: str) -> str:
    """Return a text whose UTF-8 is decoded with another encoding."""
    return text.encode().decode(codec, errors="replace")


def write_corpus(folder: Path, pairs: Pairs, languages: list[str]) -> Path:
    """Write pairs and a configuration; return the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, language in enumerate(languages):
        text = "".join(pair[side].replace("\n", " ") + "\n" for pair in pairs)
        (folder / f"train.{language}").write_text(text, encoding="utf-8", newline="\n")
    config = folder / "clean.toml"
    config.write_text(
        f'[data]\nroot = "{folder}"\nsource = "{languages[0]}"\ntarget = "{languages[1]}"\n', encoding="utf-8"
    )
    return config


def clean_seconds(config: Path, out: Path, *settings: str) -> float:
    """Run `manyheads data clean` in this process; return the processor seconds."""
    import manyheads.runs.clean  # noqa: F401  # so that the import is not timed
    from manyheads.cli.main import run

    overrides = [part for setting in settings for part in ("--set", setting)]
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["-q", "data", "clean", str(config), "-o", str(out), *overrides]) == 0
    return time.process_time() - start


def measure_rates(folder: Path, pairs: Pairs, classes: list[str], languages: list[str]) -> dict[str, Any]:
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


def output_files(folder: Path) -> dict[str, bytes]:
    """Return the content of each file in an output folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def measure_kills(folder: Path, pairs: Pairs, languages: list[str], kills: int) -> dict[str, Any]:
    """Kill the command at random moments and resume it; compare the files of all finished cleanings."""
    config, rng = write_corpus(folder, pairs, languages), random.Random(1)
    start = time.monotonic()
    subprocess.run(
        [*PROGRAM, "data", "clean", str(config), "-o", str(folder / "whole")], check=True, stdout=subprocess.DEVNULL
    )
    full_seconds, same_bytes, finished, killed = time.monotonic() - start, True, 0, 0
    while killed < kills:
        out = folder / f"killed-{finished}"
        process = subprocess.Popen(
            [*PROGRAM, "data", "clean", str(config), "-o", str(out)], stdout=subprocess.DEVNULL
        )
        try:
            process.wait(rng.uniform(0.2, 1.0) * full_seconds)
            same_bytes, finished = same_bytes and output_files(out) == output_files(folder / "whole"), finished + 1
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    out = folder / f"killed-{finished}"
    subprocess.run([*PROGRAM, "data", "clean", str(config), "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
    return {
        "kills": killed,
        "finished": finished + 1,
        "same bytes": same_bytes and output_files(out) == output_files(folder / "whole"),
    }


def measure_trainings(folder: Path, source: Path, texts: dict[str, Pairs], arguments: Any) -> dict[str, float]:
    """Train on the clean, the dirty and the cleaned text; return the BLEU of each on the dev text."""
    results = {}
    dev = [next(source.glob(f"dev.{language}*")) for language in arguments.languages]
    for name, pairs in texts.items():
        config = write_corpus(folder / name, pairs, arguments.languages)
        root = folder / name
        if name == "cleaned":
            clean_seconds(config, folder / "out")
            root = folder / "out"
        valid = json.dumps([str(path.resolve()) for path in dev])
        settings = [f"data.root={root}", f"data.valid={valid}", f"data.test={valid}", *arguments.settings]
        overrides = [part for setting in settings for part in ("--set", setting)]
        run = folder / f"run-{name}"
        train = [*PROGRAM, "train", arguments.recipe, "-o", str(run), *overrides]
        subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
        evaluation = subprocess.run(
            [*PROGRAM, "evaluate", str(run), "--json"], check=True, stdout=subprocess.PIPE, text=True
        )
        results[name] = json.loads(evaluation.stdout)["bleu"]
    return results


def load_corpus(arguments: Any, folder: Path) -> tuple[Path, Pairs, list[str]]:
    """Return the folder of the corpus, its pairs, and lines in other languages."""
    if arguments.tiny:
        tiny.write_pairs(folder, valid="dev")
        lines = [
            (folder / f"train.{language}").read_text(encoding="utf-8").split("\n")[:-1] for language in ("de", "en")
        ]
        return folder, list(zip(*lines, strict=True)), ["Un homme est dans la rue et il parle avec une femme."]
    source = arguments.data / arguments.corpus
    sides = [read(source, language) for language in arguments.languages]
    pairs = list(zip(*sides, strict=True))
    if arguments.half:
        pairs = pairs[arguments.half - 1 :: 2]
    third = sorted({"fr", "cs"} - {*arguments.languages})
    foreign = [line for language in third for line in read(arguments.data / arguments.foreign, language)]
    return source, pairs[: arguments.pairs], foreign


def main() -> None:
    """Measure the parts that `--parts` names."""
    parser = machine.parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--corpus", default="tatoeba-de-en")
    parser.add_argument("--languages", nargs=2, help="source and target; default: from the name of the corpus")
    parser.add_argument("--foreign", default="multi30k", help="corpus with train.fr.gz and train.cs.gz")
    parser.add_argument("--parts", nargs="+", default=["rates"], choices=["rates", "kills", "trainings"])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--half", type=int, choices=[1, 2], help="take every second pair; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--recipe", default="tatoeba-de-en", help="recipe of the trainings")
    parser.add_argument("--width", type=int, help="model.d_model of the trainings; default: that of the recipe")
    parser.add_argument("--steps", type=int, default=2_500, help="updates of each training")
    parser.add_argument("--out", type=Path, help="folder to keep the trainings in; default: a temporary one")
    arguments = machine.parse(parser, tiny={"parts": ["rates", "kills"], "kills": 1}, required=["data"])
    arguments.languages = arguments.languages or arguments.corpus.removesuffix("-20k").split("-")[-2:]
    arguments.settings = [
        f"training.steps={arguments.steps}", "training.max_minutes=none", f"training.seed={arguments.seed}",
    ]  # fmt: skip
    if arguments.width:
        arguments.settings += [f"model.d_model={arguments.width}", f"model.d_ff={4 * arguments.width}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or Path(temporary)
        source, pairs, foreign = load_corpus(arguments, folder)
        dirty, classes = plant_noise(pairs, foreign, arguments.seed)
        document: dict[str, Any] = {"unit": "share, pairs/s", "corpus": arguments.corpus, "pairs": len(pairs)}
        document |= machine.about("numpy", threads=1)
        if "rates" in arguments.parts:
            document["rates"] = measure_rates(folder / "rates", dirty, classes, arguments.languages)
        if "kills" in arguments.parts:
            document["kills"] = measure_kills(folder / "kills", dirty, arguments.languages, arguments.kills)
        if "trainings" in arguments.parts:
            texts = {"clean": pairs, "dirty": dirty, "cleaned": dirty}
            document["BLEU"] = measure_trainings(folder, source, texts, arguments)
    if arguments.json:
        print(json.dumps(document))
        return
    print(machine.describe(document))
    for part in ("rates", "kills", "BLEU"):
        for name, value in document.get(part, {}).items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
