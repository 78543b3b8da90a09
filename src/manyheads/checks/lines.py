"""Damaged lines, near copies of held-out text in train, and the counts of a split: checks of any text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bitext.defects import SEGMENTED_SHARE, damage, segmentation
from bitext.pairs import Pair
from bitext.report import SplitReport
from bitext.typography import without_marks
from manyheads.checks.catalogue import config_finding
from manyheads.checks.evidence import QuotedLines, Share
from manyheads.config.schema import Config
from transformer_doctor.checks.splits import Words, near_keys, words_of
from transformer_doctor.report import Finding

# Shares of the lines of a split from which on a defect is a warning, or an error.
DAMAGED, _DAMAGED_WRONG = 0.001, 0.02
_QUESTION = 0.02  # 0.3 % of IMDb's reviews have no blank after a question mark
LEAST_LINES = 3
_DUPLICATED = 0.1
_HELD_OUT, _HELD_OUT_WRONG = 0.005, 0.05  # the second as in `examine_split`
_NEAR_SHARE = 0.1
_EMPTY, _ODD = 0.02, 0.05
_FEW_VALIDATION = 100  # at an accuracy or a BLEU of a half, five points are then one standard deviation

# Kind of a defect -> its finding, the share of lines from which on it is named, and what these lines do.
_DEFECTS: dict[str, tuple[str, float, str]] = {
    "misread": ("encoding-damaged", DAMAGED, "hold letters read in the wrong encoding"),
    "lost": ("encoding-damaged", DAMAGED, "have lost letters"),
    "question": ("encoding-damaged", _QUESTION, "have a question mark in the place of a letter"),
    "entities": ("html-entities", DAMAGED, "hold such as &amp;"),
    "pieces": ("subword-pieces", SEGMENTED_SHARE["pieces"], "hold marks of subword pieces"),
    "marks": (
        "typographic-marks",
        DAMAGED,
        "hold soft hyphens, marks of direction, ligatures or full-width letters",
    ),
    "tokenised": ("tokenised-text", SEGMENTED_SHARE["tokenised"], "have punctuation apart from its word"),
}


class LineCounts:
    """Damaged or segmented lines of one side, or of plain text, by the kind of their defect."""

    def __init__(self) -> None:
        self.lines = 0
        self.defects: dict[str, QuotedLines] = {}

    def add(self, text: str, line: int) -> None:
        """Count a line."""
        self.lines += 1
        for kind in filter(
            None, (damage(text), segmentation(text), "marks" if without_marks(text) != text else None)
        ):
            self.defects.setdefault(kind, QuotedLines()).add(line, text)

    def findings(self, where: str) -> Iterator[Finding]:
        """Yield findings about the defects of more lines than a sound text has."""
        for kind, quoted in self.defects.items():
            name, most, lines_do = _DEFECTS[kind]
            part = Share(quoted.count, self.lines)
            if quoted.count >= LEAST_LINES and part > most:
                severity = "error" if name == "encoding-damaged" and part > _DAMAGED_WRONG else None
                yield config_finding(name, f"{where}: {part} lines {lines_do}{quoted}", severity)


class NearCopies:
    """Pairs of held-out splits with a near copy in train: the same words, or all but one; not the same pair."""

    def __init__(self, held_out: Mapping[str, Iterable[Pair]]) -> None:
        self.pairs = {name: list(pairs) for name, pairs in held_out.items()}
        self.copied: dict[str, set[int]] = {name: set() for name in held_out}
        self.keys: dict[Words, list[tuple[str, int]]] = {}
        self.halves: set[tuple[int, str, Words]] = set()
        for name, pairs in self.pairs.items():
            for index, pair in enumerate(pairs):
                words = words_of((pair.source, pair.target))
                self.halves.update(_halves_of(words))
                for key in near_keys(words):
                    self.keys.setdefault(key, []).append((name, index))

    def add(self, pair: Pair) -> None:
        """Compare a pair of train with the held-out pairs."""
        words = words_of((pair.source, pair.target))
        if self.halves.isdisjoint(_halves_of(words)):
            return
        for key in near_keys(words):
            for name, index in self.keys.get(key, ()):
                held_out = self.pairs[name][index]
                if (held_out.source, held_out.target) != (pair.source, pair.target):
                    self.copied[name].add(index)

    def findings(self, name: str, size: int) -> Iterator[Finding]:
        """Yield a finding if a held-out split of `size` pairs has near copies in train."""
        quoted = QuotedLines()
        for index in sorted(self.copied[name]):
            quoted.add(self.pairs[name][index].line, self.pairs[name][index].source)
        copied = Share(quoted.count, size)
        if copied > _NEAR_SHARE:
            yield config_finding("near-copies-in-train", f"{name}: of {copied} a near copy stands in train{quoted}")


def _halves_of(words: Words) -> list[tuple[int, str, Words]]:
    """Return two keys, one of which near copies share, as one word differs at most: number of words, and a half."""
    middle = len(words) // 2
    return [(len(words), "first", words[:middle]), (len(words), "second", words[middle:])]


def split_findings(name: str, split: SplitReport, config: Config) -> Iterator[Finding]:
    """Yield findings about empty lines, duplicates, overlap with train and unlike lengths of a split."""
    read, data = split.read, config.data
    empty, duplicates = Share(split.empty, read), Share(split.duplicates, read)
    if empty > _EMPTY:
        yield config_finding("empty-lines", f"{name}: {empty} lines have no text on a side")
    if name == "train":
        if duplicates > _DUPLICATED:
            consequence = "they are dropped" if data.drop_duplicates else "data.drop_duplicates is off"
            evidence = f"train: {duplicates} came before; {consequence}"
            yield config_finding("much-duplicated", evidence, "note" if data.drop_duplicates else None)
        if split.filtered and (odd := Share(split.filtered.ratio, read)) > _ODD:
            evidence = f"train: {odd} pairs with one side over {data.max_ratio:g} times as long as the other"
            yield config_finding("odd-lengths", evidence)
        return
    if name == "valid" and read < _FEW_VALIDATION:
        yield config_finding("few-validation-texts", f"valid: {read:,} texts")
    overlap = split.overlap.get("train")
    if overlap is None or (seen := Share(overlap.pairs, read)) <= _HELD_OUT:
        return
    evidence = f"{name}: {seen} stand in train"
    if data.drop_overlap:
        evidence += "; data.drop_overlap takes them out of train"
        yield config_finding("held-out-in-train", evidence, "note")
    else:
        yield config_finding("held-out-in-train", evidence, "error" if seen > _HELD_OUT_WRONG else "warning")
