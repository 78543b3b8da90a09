"""Report on a cleaning: counts by reason, thresholds and examples, as text, JSON and an HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from bitext.cleaning.clean import Judgement
from bitext.cleaning.rules import REASONS

_EXAMPLES = 40  # examples of each reason
_SHOWN = 2  # examples of each reason in the text
_MAX_EXAMPLE_CHARACTERS = 60  # characters of a side of an example in the text
SCORES = ("length", "language", "lexical", "models")
MEANINGS = {
    "empty": "no text on a side",
    "encoding": "letters read in the wrong encoding",
    "copy": "both sides are the same",
    "language": "a side in another language",
    "length": "too unlike lengths",
    "cut": "a side is cut off",
    "repetition": "a side repeats itself",
    "numbers": "other numbers on the two sides",
    "placeholders": "other addresses, tags or placeholders",
    "boilerplate": "a side that occurs too often",
    "duplicate": "copy or near copy of an earlier pair",
    "lexical": "words that do not translate each other",
    "models": "unlikely for the two models",
}

REPAIR_MEANINGS = {
    "mojibake": "UTF-8 letters read in the wrong encoding, such as Ã¤",
    "escapes": "HTML entities and escaped letters, such as &amp;",
    "access-keys": "access keys, such as _File or (&F)",
    "typography": "soft hyphens, marks of direction, ligatures, full-width letters",
}


@dataclass
class CleanReport:
    """The result of a cleaning.

    Attributes:
        folder: folder of the written files.
        files: names of the files with the kept text, source first.
        languages: languages of source and target.
        key: hash of the text and the settings.
        read, kept: number of pairs; short_read, short_kept: number of pairs with a side of less than four words.
        removed: for each reason the number of pairs removed, and the number of these under four words.
        thresholds: scores below which pairs were removed, calculated from the option `loss`.
        examples: removed pairs of each reason, spread evenly over the text.
        repaired: number of pairs by the name of their repair; repairs: the first pairs of each, before and after.
    """

    folder: str
    files: tuple[str, str]
    languages: tuple[str, str]
    key: str
    read: int
    kept: int
    short_read: int
    short_kept: int
    removed: dict[str, dict[str, int]]
    thresholds: dict[str, float]
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    repairs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def note_repair(self, name: str, line: int, before: tuple[str, str], after: tuple[str, str]) -> None:
        """Count a repaired pair, and keep the first ones as examples."""
        self.repaired[name] = self.repaired.get(name, 0) + 1
        examples = self.repairs.setdefault(name, [])
        if len(examples) < _EXAMPLES:
            examples.append({"line": line, "before": [*before], "after": [*after]})

    def to_json(self) -> dict[str, Any]:
        """Return plain values by attribute name, without the folder: the same text gives the same document."""
        values = {name: value for name, value in vars(self).items() if name != "folder"}
        return {**values, "files": list(self.files), "languages": list(self.languages)}

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path) -> CleanReport:
        """Read the JSON form of `to_json`; raises TypeError or KeyError for another form."""
        return cls(
            str(folder), **{**content, "files": tuple(content["files"]), "languages": tuple(content["languages"])}
        )

    def lines(self) -> list[str]:
        """Return the counts and examples as lines of text."""
        lines = [
            f"{self.read:,} pairs read, {self.kept:,} kept ({_share(self.kept, self.read)})",
            f"under four words: {self.short_read:,} read, {self.short_kept:,} kept "
            f"({_share(self.short_kept, self.short_read)})",
        ]
        for name, count in self.repaired.items():
            lines.append(
                f"  {name:<13}{count:>9,}  {_share(count, self.read):>6}  repaired: {REPAIR_MEANINGS[name]}"
            )
            for repair in self.repairs[name][:_SHOWN]:
                sides = zip(repair["before"], repair["after"], strict=True)
                before, after = next((*map(_shorten, side),) for side in sides if side[0] != side[1])
                lines.append(f"      {repair['line']:,}: {before} -> {after}")
        for reason, counts in self.removed.items():
            part, short = _share(counts["pairs"], self.read), counts["short"]
            lines.append(f"  {reason:<13}{counts['pairs']:>9,}  {part:>6}  {short:>7,} short  {MEANINGS[reason]}")
            for example in self.examples.get(reason, [])[:_SHOWN]:
                lines.append(
                    f"      {example['line']:,}: {_shorten(example['source'])} ||| {_shorten(example['target'])}"
                )
        limits = ", ".join(f"{name} {value:.2f}" for name, value in self.thresholds.items())
        if limits:
            lines.append(f"Removed below these scores: {limits}")
        names = " and ".join(str(Path(self.folder) / name) for name in self.files)
        return [
            *lines,
            f"{names}: the text that is left; removed.tsv.gz and report.html: what was removed, and why",
        ]


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else "-"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_EXAMPLE_CHARACTERS else f"{text[:_MAX_EXAMPLE_CHARACTERS]}…"


def report_of(
    judgement: Judgement, folder: Path, files: tuple[str, str], languages: tuple[str, str], key: str
) -> CleanReport:
    """Return the report of a judgement, without examples."""
    reasons, short = judgement.reasons, judgement.short
    counts = np.bincount(reasons, minlength=len(REASONS)).tolist()
    of_short = np.bincount(reasons[short], minlength=len(REASONS)).tolist()
    removed = {
        REASONS[number]: {"pairs": counts[number], "short": of_short[number]}
        for number in range(1, len(REASONS))
        if counts[number]
    }
    return CleanReport(
        str(folder), files, languages, key, len(reasons), counts[0], int(short.sum()), of_short[0], removed,
        dict(judgement.thresholds),
    )  # fmt: skip


def chosen_examples(judgement: Judgement) -> set[int]:
    """Return the numbers of the pairs to show: some of each reason, spread evenly over the text."""
    chosen: set[int] = set()
    for number in range(1, len(REASONS)):
        pairs = np.flatnonzero(judgement.reasons == number)
        if len(pairs):
            chosen.update(pairs[np.linspace(0, len(pairs) - 1, _EXAMPLES).astype(np.int64)].tolist())
    return chosen


def score_texts(scores: Iterable[float]) -> list[str]:
    """Return the scores of a pair as text, "" for NaN; a language score above 9,999 marks a foreign script."""
    return ["" if math.isnan(value) else f"{value:.3f}" for value in scores]


def page_of(report: CleanReport) -> str:
    """Return the report as one self-contained page that can be sorted, in English and Korean."""
    return fill_page(resources.files(__package__) / "page.html", report.to_json())


def fill_page(page: Traversable, document: object) -> str:
    """Return a page with its data, which a script of the page shows."""
    return page.read_text(encoding="utf-8").replace(
        "__DATA__", json.dumps(document, ensure_ascii=False).replace("<", "\\u003c")
    )
