"""Measure how much text gets the warning `unlike-training`: test lines of a translator, and lines of other kinds.

    python benchmarks/unlike_training.py RUN --usual FILE --outside FILE... [--lines 100] [--json]

The usual lines are those of a test set of the run (up to ten times --lines); each other file holds lines of another
language or of another kind of text, in plain text or gzip. Keyboard noise is made up: parts of the rows of a
keyboard, and random letters. Figures are shares of lines, from 0 to 1.
"""

from __future__ import annotations

import argparse
import random
from itertools import islice
from pathlib import Path

from bitext.lines import read_lines
from harness import Document, main, option
from manyheads.inference.translation.translator import Translator
from material import RUN, named

ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def keyboard_noise(count: int, seed: int = 1) -> list[str]:
    """Return lines of one to four groups of three to eight letters that neighbour on a keyboard, or are random."""
    rng = random.Random(seed)

    def group() -> str:
        row = rng.choice(ROWS)
        start = rng.randrange(len(row) - 2)
        return (
            row[start : start + rng.randint(3, 6)]
            if rng.random() < 0.5
            else "".join(rng.choices("".join(ROWS), k=rng.randint(3, 8)))
        )

    return [" ".join(group() for _ in range(rng.randint(1, 4))) for _ in range(count)]


def warned_share(translator: Translator, texts: list[str]) -> float:
    assert translator.sources is not None, "the run has no model of its sources: train it with this version"
    lines = translator.splitter().lines(texts)
    return sum(translator.sources.is_unlike(line.parts) for line in lines) / len(lines)


def measure(arguments: argparse.Namespace) -> Document:
    translator = Translator.load(arguments.run, device="cpu")
    rows = {"usual": warned_share(translator, list(islice(read_lines(arguments.usual), 10 * arguments.lines)))}
    outside = {str(path): list(islice(read_lines(path), arguments.lines)) for path in arguments.outside}
    outside["keyboard noise"] = keyboard_noise(arguments.lines)
    rows |= {name: warned_share(translator, lines) for name, lines in outside.items()}
    total = sum(rows[name] * len(lines) for name, lines in outside.items())
    return {"rows": {**rows, "all outside": total / sum(map(len, outside.values()))}}


OPTIONS = {
    "run": RUN,
    "--usual": option(Path, "test set of the run", tiny=named("test.de"), required=True),
    "--outside": option(Path, "lines of another language or kind", nargs="+", default=[]),
    "--lines": option(100, "lines of each file", tiny=10),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share of lines")
