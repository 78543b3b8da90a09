"""Translate documents, and measure where tags and cues stand in the translations.

    python benchmarks/documents.py --texts TEST.en.gz TEST.de.gz [--marks tests/documents/gold_marks.tsv] [--json]

`cues` breaks reference translations into subtitles: each marked sentence is cut into two cues at its marked word,
with `--speed` letters of the source a second, joined by the reader, and broken again. The marks are the word
alignment, so that the breaking alone is measured. The limit is what the best cut of each translation reaches,
whatever its length; "needlessly" counts sentences for which another cut is within the reading speed.
"""

from __future__ import annotations

import argparse
import csv
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from harness import FOLDER, Document, main, option
from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated
from material import read_rows, write, write_pairs

MARKS = FOLDER.parent / "tests/documents/gold_marks.tsv"
LINE_LENGTH, READING_SPEED = 42, 17.0
PAUSE = 60  # seconds between two sentences


def read_marks(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file of marks; its comments describe them."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))


def numbers(ranges: str) -> set[int]:
    """Return the numbers of ranges such as "2,5-7"."""
    pairs = (part.partition("-") for part in ranges.split(","))
    return {number for first, _, last in pairs for number in range(int(first), int(last or first) + 1)}


def srt_time(seconds: float) -> str:
    whole = round(seconds * 1000)
    return f"{whole // 3_600_000:02}:{whole // 60_000 % 60:02}:{whole // 1000 % 60:02},{whole % 1000:03}"


def write_srt(cues: Sequence[tuple[str, float, float]]) -> str:
    return "".join(
        f"{number}\n{srt_time(first)} --> {srt_time(last)}\n{text}\n\n"
        for number, (text, first, last) in enumerate(cues, 1)
    )


def cues(arguments: argparse.Namespace) -> Document:
    """Break the reference translation of each marked sentence into its two cues."""
    rows = read_rows(arguments.texts)
    cuts = [row for row in read_marks(arguments.marks) if row["border"] != "-"]
    subtitles, translations, second_words, clock = [], [], [], 0.0
    for row in cuts:
        source, target = (text.split() for text in rows[int(row["line"]) - 1])
        border, behind = int(row["border"]), numbers(row["behind"])
        for part in (source[:border], source[border:]):
            text = textwrap.fill(" ".join(part), LINE_LENGTH)
            subtitles.append((text, clock, round(clock + len(text) / arguments.speed, 3)))
            clock = subtitles[-1][2]
        clock += PAUSE
        links = " ".join(f"{border if word in behind else 0}-{word}" for word in range(len(target)))
        translations.append(Translated(" ".join(target), links))
        second_words.append([word in behind for word in range(len(target))])
    document = read_document(write_srt(subtitles).encode(), "srt", ReadOptions(target="de"))
    assert len(document.units) == len(cuts), "the cues of each sentence are one unit"
    written = document.write(translations).decode()
    texts = [block.split("\n", 2)[2] for block in written.strip().split("\n\n")]
    right = limit = 0
    for number, second in enumerate(second_words):
        sides = [sum(word == (index >= cut) for index, word in enumerate(second)) for cut in range(1, len(second))]
        right += sides[len(texts[2 * number].split()) - 1]
        limit += max(sides)
    words = sum(map(len, second_words))
    times = [last - first for _, first, last in subtitles]
    fast = [len(text) > READING_SPEED * time + 1e-6 for text, time in zip(texts, times, strict=True)]
    needless = 0
    for index, translated in enumerate(translations):
        rooms = [READING_SPEED * time for time in times[2 * index : 2 * index + 2]]
        blanks = [match.span() for match in re.finditer(" ", translated.text)]
        ways = any(start <= rooms[0] and len(translated.text) - end <= rooms[1] for start, end in blanks)
        needless += ways and any(fast[2 * index : 2 * index + 2])
    return {
        "sentences": len(cuts),
        "words": words,
        "words in their cue %": round(100 * right / words, 2),
        "limit %": round(100 * limit / words, 2),
        "lines over their length": sum(len(line) > LINE_LENGTH for text in texts for line in text.split("\n")),
        "cues of more than two lines": sum(text.count("\n") > 1 for text in texts),
        "cues over the reading speed": sum(fast),
        "needlessly": needless,
    }


def measure(arguments: argparse.Namespace) -> Document:
    return {"rows": {"cues": cues(arguments)}}


def tiny_marks(folder: Path) -> Path:
    return write(folder / "marks.tsv", ["line\tborder\tbehind", "1\t2\t1-2", "2\t-\t-"])


def tiny_texts(folder: Path) -> list[Path]:
    root = write_pairs(folder)
    return [root / "test.de", root / "test.en"]


OPTIONS = {
    "--texts": option(Path, "source and reference lines", nargs=2, tiny=tiny_texts, required=True),
    "--marks": option(MARKS, "marks of the lines", tiny=tiny_marks),
    "--speed": option(15.0, "letters of the source a second"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="words")
