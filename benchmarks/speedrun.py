"""Verify an entry of the speedrun: train it again, count its processor time, and score its translations.

    python benchmarks/speedrun.py benchmarks/speedrun/recipe --root data/multi30k [--run FOLDER] [--json]
    python benchmarks/speedrun.py --tiny

ENTRY is a folder with `entry.toml`; the rules and the records are in benchmarks/speedrun/README.md. The script

1.  compares the text with the SHA-256 of the official files, and gives the entry a folder with train and val alone;
2.  runs its `train` in a copy of the entry, between two runs of the reference training, and counts the processor
    time of all processes of each: an entry has the time of 84 reference trainings, so that machines compare;
3.  gives its `translate` the English test text on standard input, and scores what it prints by sacreBLEU.

It prints one record. The exit code is 1 if the entry broke a rule.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import sacrebleu

from harness import FOLDER, Document, main, option, run_counted
from material import named, write, write_pairs

REFERENCE = FOLDER / "speedrun" / "reference.py"
MOST_REFERENCES = 84  # of processor time for a training; the same again for translating
SOURCE, TARGET, TEST = "en", "de", "test_2016_flickr"
SUMS = FOLDER / "speedrun" / "SHA256SUMS"  # of the text of the official files, unpacked


def read_text(root: Path, name: str) -> bytes:
    packed = root / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (root / name).read_bytes()


def check_text(root: Path) -> None:
    """End with an error if a file is not the official one."""
    for expected, name in map(str.split, SUMS.read_text().splitlines()):
        if hashlib.sha256(read_text(root, name)).hexdigest() != expected:
            raise SystemExit(f"error: {root / name} is not the official file of Multi30k: its SHA-256 is another.")


def processor_seconds(command: list[str], folder: Path, text: bytes | None = None) -> tuple[float, bytes]:
    """Run a command in a folder; return the processor time of all its processes, and what it printed.

    `text` is its standard input; without one, what it prints goes to standard error.
    """
    output = sys.stderr if text is None else subprocess.PIPE
    seconds, done = run_counted(command, cwd=folder, input=text or b"", stdout=output)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)} ended with exit code {done.returncode}.")
    return seconds, done.stdout or b""


def verify(entry: Path, root: Path, folder: Path, reference: list[str]) -> Document:
    description = tomllib.loads((entry / "entry.toml").read_text(encoding="utf-8"))
    copied = shutil.copytree(entry, folder / "entry")
    data = folder / "data"
    data.mkdir()
    for name in (f"{split}.{language}" for split in ("train", "val") for language in (SOURCE, TARGET)):
        (data / name).write_bytes(read_text(root, name))
    paths = {"python": sys.executable, "data": str(data), "run": str(folder / "run")}
    train, translate = ([part.format(**paths) for part in description[name]] for name in ("train", "translate"))
    references = [processor_seconds(reference, folder)[0]]
    training, _ = processor_seconds(train, copied)
    references.append(processor_seconds(reference, folder)[0])
    translating, printed = processor_seconds(translate, copied, read_text(root, f"{TEST}.{SOURCE}"))
    unit = statistics.mean(references)
    expected = read_text(root, f"{TEST}.{TARGET}").decode().split("\n")[:-1]
    outputs = printed.decode().split("\n")[:-1]
    broken = []
    if len(outputs) != len(expected):
        broken.append(f"{len(outputs)} lines were printed for {len(expected)}")
        outputs = (outputs + [""] * len(expected))[: len(expected)]
    for part, seconds in (("training", training), ("translating", translating)):
        if seconds > MOST_REFERENCES * unit:
            broken.append(f"{part} took {seconds / unit:.1f} reference trainings of {MOST_REFERENCES}")
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    return {
        "entry": description["name"],
        "changed": description["changed"],
        "BLEU": round(bleu.corpus_score(outputs, [expected]).score, 2),
        "chrF": round(chrf.corpus_score(outputs, [expected]).score, 2),
        "signature": str(bleu.get_signature()),
        "reference trainings": round(training / unit, 2),
        "processor seconds": {
            "training": round(training, 1),
            "translating": round(translating, 1),
            "references": [round(seconds, 1) for seconds in references],
        },
        "outputs equal to their reference": sum(map(str.__eq__, outputs, expected)),
        "broken rules": broken,
    }


def write_entry(folder: Path, **commands: list[str]) -> Path:
    """Write the description of an entry with its commands; return its folder."""
    description = {"name": folder.name, "changed": "nothing", **commands}
    write(folder / "entry.toml", (f"{name} = {json.dumps(value)}" for name, value in description.items()))
    return folder


def write_tiny(folder: Path) -> Path:
    """Write made-up text, and an entry that copies it; return the folder of the entry."""
    write_pairs(folder, valid="val", test=TEST)
    train = ["{python}", "-c", "import pathlib, sys; pathlib.Path(sys.argv[1]).mkdir()", "{run}"]
    copy = ["{python}", "-c", "import shutil, sys; shutil.copyfileobj(sys.stdin, sys.stdout)"]
    return write_entry(folder / "copy", train=train, translate=copy)


def measure(arguments: argparse.Namespace) -> Document:
    folder = arguments.run or arguments.folder / "run"
    folder.mkdir(parents=True, exist_ok=True)
    reference = [sys.executable, str(REFERENCE)]
    if arguments.tiny:
        reference.append("1")
    else:
        check_text(arguments.root)
    return verify(arguments.entry, arguments.root, folder.resolve(), reference)


OPTIONS = {
    "entry": option(Path, "folder of the entry", tiny=write_tiny, required=True),
    "--root": option(Path, "folder of Multi30k, compressed or not", tiny=named("."), required=True),
    "--run": option(Path, "empty folder to keep the training in", metavar="FOLDER"),
}

if __name__ == "__main__":
    record = main(measure, __doc__, OPTIONS, unit="BLEU", packages=["sacrebleu"], threads=2)
    sys.exit(bool(record["broken rules"]) and not record.get("tiny"))
