"""Measure the splits of a corpus, pair by pair: lengths, ratios, characters, duplicates, overlaps."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bitext.filtering import FilterCounts, PairFilter, digest
from bitext.letters import has_text
from bitext.pairs import Pair

_NUM_LONGEST = 5  # lines listed for each side
_EXAMPLES = 20  # unseen characters listed for each side


@dataclass(frozen=True)
class Spread:
    """Distribution of a number over the pairs; all zero if there are none."""

    mean: float
    median: float
    p99: float
    largest: float


@dataclass(frozen=True)
class LongLine:
    """One of the longest lines of a side: line number and number of characters."""

    line: int
    characters: int


@dataclass(frozen=True)
class Unseen:
    """Characters of a held-out side that its training side lacks: their number, and the most frequent ones."""

    distinct: int
    occurrences: int
    examples: str


@dataclass(frozen=True)
class SideReport:
    """Figures of one side of a split.

    Attributes:
        characters, words: distributions over the lines; words are separated by blanks.
        longest: the longest lines, longest first.
        unseen: characters that train does not have; None for train itself, or without train.
    """

    characters: Spread
    words: Spread
    longest: tuple[LongLine, ...]
    unseen: Unseen | None


@dataclass(frozen=True)
class Overlap:
    """Number of pairs of a split that occur in another split: as pairs, by source, by target."""

    pairs: int
    sources: int
    targets: int


@dataclass(frozen=True)
class SplitReport:
    """Figures of one split.

    Attributes:
        read: number of pairs; empty: number without text on a side; duplicates: number that occurred before.
        filtered: counts of the filter of training; None for held-out splits, which are not filtered.
        ratio: distribution of longer over shorter side, in characters.
        identical: share of pairs with the same text on both sides.
        overlap: overlap with each other split, by its name; empty for train, see `FilterCounts`.
    """

    read: int
    empty: int
    duplicates: int
    filtered: FilterCounts | None
    source: SideReport
    target: SideReport
    ratio: Spread
    identical: float
    overlap: dict[str, Overlap]


def keys_of(pair: Pair) -> tuple[int, int, int]:
    """Return hashes of the pair, its source, its target."""
    return digest(pair.source, pair.target), digest(pair.source), digest(pair.target)


class OverlapCounter:
    """Count the pairs, sources and targets of a held-out split that occur in other splits."""

    def __init__(self, pairs: Iterable[Pair], normalize: Callable[[str], str]) -> None:
        cleaned = (Pair(normalize(pair.source), normalize(pair.target), pair.line) for pair in pairs)
        self.rows = [keys_of(pair) for pair in cleaned if has_text(pair.source) and has_text(pair.target)]
        self.known = [{row[kind] for row in self.rows} for kind in range(3)]
        self.matches: dict[str, list[set[int]]] = {}

    def note(self, other: str, keys: tuple[int, int, int]) -> None:
        """Count a pair of another split."""
        matched = self.matches.setdefault(other, [set(), set(), set()])
        for kind, key in enumerate(keys):
            if key in self.known[kind]:
                matched[kind].add(key)

    def overlaps(self) -> dict[str, Overlap]:
        """Return the overlaps by the name of the other split."""
        return {
            other: Overlap(*(sum(row[kind] in matched[kind] for row in self.rows) for kind in range(3)))
            for other, matched in self.matches.items()
        }


class _SideTally:
    def __init__(self) -> None:
        self.characters, self.words = array("q"), array("q")
        self.alphabet: Counter[str] = Counter()
        self.longest: list[tuple[int, int]] = []  # a heap of (characters, -line)

    def add(self, text: str, line: int) -> None:
        self.characters.append(len(text))
        self.words.append(len(text.split()))
        self.alphabet.update(text)
        heapq.heappush(self.longest, (len(text), -line))
        if len(self.longest) > _NUM_LONGEST:
            heapq.heappop(self.longest)

    def unseen(self, train: _SideTally) -> Unseen:
        unseen = Counter({symbol: n for symbol, n in self.alphabet.items() if symbol not in train.alphabet})
        examples = "".join(symbol for symbol, _ in unseen.most_common(_EXAMPLES))
        return Unseen(len(unseen), unseen.total(), examples)

    def report(self, train: _SideTally | None) -> SideReport:
        return SideReport(
            characters=_spread_of(self.characters),
            words=_spread_of(self.words),
            longest=tuple(LongLine(-line, size) for size, line in sorted(self.longest, reverse=True)),
            unseen=self.unseen(train) if train else None,
        )


class Measure:
    """Measure one split, pair by pair."""

    def __init__(self, pair_filter: PairFilter) -> None:
        self.filter = pair_filter
        self.source, self.target = _SideTally(), _SideTally()
        self.ratios = array("d")
        self.identical = 0

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Return an iterator that measures pairs and yields those with text on both sides, normalised."""
        return filter(self.add, map(self.filter.clean, pairs))

    def add(self, pair: Pair) -> bool:
        """Filter and measure one pair; return False if a side has no text."""
        self.filter.keeps(pair)
        if not (has_text(pair.source) and has_text(pair.target)):
            return False
        self.source.add(pair.source, pair.line)
        self.target.add(pair.target, pair.line)
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        self.ratios.append(longer / shorter)
        self.identical += pair.source == pair.target
        return True

    def report(
        self, *, used: FilterCounts | None, train: Measure | None, overlap: dict[str, Overlap]
    ) -> SplitReport:
        """Return the figures; unseen characters are characters that `train` does not have."""
        counts, total = self.filter.counts, max(1, len(self.ratios))
        return SplitReport(
            read=counts.read,
            empty=counts.empty,
            duplicates=counts.duplicate,
            filtered=used,
            source=self.source.report(train.source if train else None),
            target=self.target.report(train.target if train else None),
            ratio=_spread_of(self.ratios),
            identical=self.identical / total,
            overlap=overlap,
        )


def _spread_of(values: array[int] | array[float]) -> Spread:
    """Return mean, median, 99th percentile (a value that occurs) and maximum."""
    if not values:
        return Spread(0.0, 0.0, 0.0, 0.0)
    numbers = np.asarray(values)
    p99 = np.percentile(numbers, 99, method="inverted_cdf")
    return Spread(float(numbers.mean()), float(np.median(numbers)), float(p99), float(numbers.max()))
