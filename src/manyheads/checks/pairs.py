"""Copies, alignment and languages of sentence pairs, counted pair by pair while the text is read.

Whether line i of one side is the translation of line i of the other is judged from lengths alone: a long
sentence has a long translation, so that the lengths of true pairs correlate (Gale and Church 1993). The lengths
of lines that were shuffled, or shifted because one is missing, do not.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitext.defects import LEAST_WORDS, letters_of
from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checks.catalogue import config_finding
from manyheads.checks.evidence import QuotedLines, Share, list_first
from manyheads.checks.languages import WORD, Classifier, likeness
from manyheads.checks.lines import LEAST_LINES, LineCounts
from transformer_doctor.report import Finding

# Shares of the pairs of a split from which on a defect is a warning, or an error. Khayrallah and Koehn (2018) put
# 5 % to 100 % of each noise into a corpus: 5 % of copies already ruin a translator, 5 % of misaligned lines hardly.
_COPIED, _COPIED_WRONG = 0.005, 0.05
_MIXED = 0.03  # frequent words are wrong about a line now and then, names and citations are in another language
_SWAPPED = 0.5  # of the pairs whose languages were recognised
_LEAST_RECOGNISED = 10  # pairs; fewer say nothing
_TOGETHER = 0.3  # least correlation of lengths: of true pairs it is 0.59 to 0.97, in eleven public sets
_SHIFTED = 0.1  # by how much a shift by one line must be better
_WORDS_LEARNT_FROM = 20_000  # pairs
_BLOCK = 200  # pairs whose correlation is computed together, and then known to about 0.07
_LEAST_PAIRS = 100  # fewer say nothing
# A stretch is misaligned where its lengths hardly correlate, and lie further from the regression line than
# elsewhere: in a corpus that is sorted by length the first is true everywhere, and the second nowhere.
_APART, _WIDER = 0.2, 1.3
_MIN_DEVIATION = 1e-9  # standard deviation up to which lengths are constant


@dataclass(frozen=True)
class _Stretch:
    """Neighbouring blocks: first and last pair, counted from 0, and mean correlation of the blocks."""

    first: int
    last: int
    correlation: float


@dataclass(frozen=True)
class _Alignment:
    """Correlation of the lengths of the two sides.

    Attributes:
        whole: correlation of the logarithms of all lengths.
        shifted: the same with the target moved by one line back or forth, whichever is higher.
        blocks: median correlation of the blocks.
        apart: stretches without correlation where the rest of the text has it.
    """

    whole: float
    shifted: float
    blocks: float
    apart: tuple[_Stretch, ...]


def _measure_alignment(source: ArrayLike, target: ArrayLike) -> _Alignment | None:
    """Compute the correlation of lengths in characters, (N,) a side; None where there are too few pairs."""
    x, y = (np.log1p(np.asarray(lengths, np.float64)) for lengths in (source, target))
    if len(x) < _LEAST_PAIRS:
        return None
    whole = _correlation(x, y)
    residuals = y - whole * y.std() / max(x.std(), _MIN_DEVIATION) * x  # residuals of the regression line
    edges = [*range(0, max(1, len(x) - _BLOCK // 2), _BLOCK), len(x)]
    windows = list(itertools.pairwise(edges))
    correlations = np.array([_correlation(x[a:b], y[a:b]) for a, b in windows])
    width = np.array([residuals[a:b].std() for a, b in windows])
    # the width of aligned stretches: a low quantile, as less than half of the text may be aligned
    usual = np.quantile(width, 0.25)
    bad = (correlations < _APART) & (width > _WIDER * usual)
    return _Alignment(
        whole=whole,
        shifted=max(_correlation(x[1:], y[:-1]), _correlation(x[:-1], y[1:])),
        blocks=float(np.median(correlations)),
        apart=tuple(_stretches(bad, correlations, windows)),
    )


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, 0 where one side is constant."""
    if min(x.std(), y.std()) < _MIN_DEVIATION:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _stretches(
    bad: NDArray[np.bool_], correlations: NDArray[np.float64], windows: list[tuple[int, int]]
) -> list[_Stretch]:
    numbers = np.flatnonzero(bad)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if numbers.size else []
    return [_Stretch(windows[run[0]][0], windows[run[-1]][1] - 1, float(correlations[run].mean())) for run in runs]


class PairCounts:
    """Counts of the pairs of a split.

    Attributes:
        pairs: number of pairs with text on both sides.
        copied: pairs whose target is the source, but for case and punctuation.
        swapped: pairs of which each side looks like the language of the other.
        only_source, only_target: pairs of which both sides look like the source's language, or the target's.
        recognised: pairs of which the language of both sides was recognised.
        words: frequencies of the words of each side, where the languages are unknown.
    """

    def __init__(self, classify: Classifier | None) -> None:
        self.classify = classify
        self.sides = LineCounts(), LineCounts()
        self.lengths = array("q"), array("q")
        self.lines = array("q")
        self.words: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self.copied, self.swapped = QuotedLines(), QuotedLines()
        self.only_source, self.only_target = QuotedLines(), QuotedLines()
        self.recognised = 0

    @property
    def pairs(self) -> int:
        """Return the number of pairs with text on both sides."""
        return len(self.lines)

    def add(self, pair: Pair) -> None:
        """Count a pair, unless a side is empty."""
        texts = pair.source, pair.target
        if not all(map(has_text, texts)):
            return
        for index, text in enumerate(texts):
            self.sides[index].add(text, pair.line)
            self.lengths[index].append(len(text))
            if self.classify is None and len(self.lines) < _WORDS_LEARNT_FROM:
                self.words[index].update(WORD.findall(text.casefold()))
        self.lines.append(pair.line)
        if len(pair.source.split()) >= LEAST_WORDS and letters_of(pair.source) == letters_of(pair.target):
            self.copied.add(pair.line, pair.source)
        elif self.classify is not None:
            self.add_languages(pair, self.classify)

    def add_languages(self, pair: Pair, classify: Classifier) -> None:
        """Count the languages of the two sides."""
        languages = classify(pair.source), classify(pair.target)
        self.recognised += None not in languages
        quoted = f"{pair.source} ||| {pair.target}"
        match languages:
            case ("target", "source"):
                self.swapped.add(pair.line, quoted)
            case ("source", "source"):
                self.only_source.add(pair.line, quoted)
            case ("target", "target"):
                self.only_target.add(pair.line, quoted)
            case _:  # as they should be, or not recognised
                pass

    def findings(self, name: str) -> Iterator[Finding]:
        """Yield findings about the pairs of one split, but for their languages."""
        for side, lines in zip(("source", "target"), self.sides, strict=True):
            yield from lines.findings(f"{name}, {side}")
        copied = Share(self.copied.count, self.pairs)
        if copied > _COPIED and self.copied.count >= LEAST_LINES:
            evidence = f"{name}: {copied} are the same on both sides{self.copied}"
            yield config_finding("source-copied", evidence, "error" if copied > _COPIED_WRONG else None)
        alignment = _measure_alignment(*self.lengths)
        if alignment is not None:
            yield from _alignment_findings(name, alignment, self.lines)


def _alignment_findings(name: str, alignment: _Alignment, lines: array[int]) -> Iterator[Finding]:
    """Yield a finding if lines do not correspond, everywhere or in some stretches."""
    if alignment.whole < _TOGETHER and alignment.blocks < _TOGETHER:
        evidence = f"{name}: the lengths of the two sides do not go together (correlation {alignment.whole:.2f})"
        if alignment.shifted > alignment.whole + _SHIFTED:
            evidence += f"; with one side moved by one line they do ({alignment.shifted:.2f})"
        elif alignment.apart and alignment.apart[0].first > 0:
            evidence += f"; up to line {lines[alignment.apart[0].first]:,} they do"
        yield config_finding("misaligned", evidence)
    elif alignment.apart:
        stretches = [f"{lines[stretch.first]:,}-{lines[stretch.last]:,}" for stretch in alignment.apart]
        yield config_finding(
            "misaligned",
            f"{name}: in lines {list_first(stretches, 3)} the lengths of the two sides do not go together "
            f"(correlation {alignment.apart[0].correlation:.2f}; elsewhere {alignment.blocks:.2f})",
        )


def language_findings(splits: Mapping[str, PairCounts]) -> Iterator[Finding]:
    """Yield findings about swapped or mixed languages in each split."""
    for name, counts in splits.items():
        swapped = counts.swapped
        if counts.recognised >= _LEAST_RECOGNISED and swapped.count > _SWAPPED * counts.recognised:
            part = Share(swapped.count, counts.recognised)
            evidence = f"{name}: in {part} pairs each side looks like the other's language{swapped}"
            yield config_finding("languages-swapped", evidence)
            continue
        for quoted, side in ((counts.only_source, "source"), (counts.only_target, "target"), (swapped, "")):
            part = Share(quoted.count, counts.pairs)
            if quoted.count >= LEAST_LINES and part > _MIXED:
                looks = f"both sides look like the {side}'s language" if side else "the sides look swapped"
                yield config_finding("languages-mixed", f"{name}: in {part} pairs {looks}{quoted}")
    train = splits.get("train")
    if train is not None and train.classify is None:
        for name, counts in splits.items():
            if name != "train" and all(counts.words):
                yield from _swapped_against_train(name, counts, train)


def _swapped_against_train(name: str, counts: PairCounts, train: PairCounts) -> Iterator[Finding]:
    """Yield a finding if the words of each side of a held-out split are those of the other side of train."""
    straight = [likeness(words, known) for words, known in zip(counts.words, train.words, strict=True)]
    crossed = [likeness(words, known) for words, known in zip(counts.words, reversed(train.words), strict=True)]
    if all(other > own for own, other in zip(straight, crossed, strict=True)):
        evidence = (
            f"{name}: {crossed[0]:.0%} of the words of its source stand in train's target and "
            f"{straight[0]:.0%} in train's source; of its target {crossed[1]:.0%} stand in train's source, "
            f"{straight[1]:.0%} in train's target"
        )
        yield config_finding("languages-swapped", evidence)
