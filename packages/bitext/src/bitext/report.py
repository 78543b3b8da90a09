"""Report counts, lengths and overlaps of a corpus.

Lengths, ratios and characters are measured on all normalised pairs with text on both sides, before any pair is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from bitext.filtering import FilterCounts, FilterRules, PairFilter
from bitext.measures import Measure, Overlap, OverlapCounter, SideReport, SplitReport, Spread, keys_of
from bitext.pairs import Pair

__all__ = ["DataReport", "Overlap", "SideReport", "SplitReport", "Spread", "report"]


@dataclass(frozen=True)
class DataReport:
    """Report on a corpus: the two languages, and the splits by name."""

    source: str
    target: str
    splits: dict[str, SplitReport]

    def to_json(self) -> dict[str, Any]:
        """Return plain values by attribute name; "filtered" also has kept and dropped."""
        plain = asdict(self)
        for name, split in self.splits.items():
            if split.filtered:
                totals = {"kept": split.filtered.kept, "dropped": split.filtered.dropped}
                plain["splits"][name]["filtered"] |= totals
        return plain

    def lines(self) -> list[str]:
        """Return a table with one column a split, then remarks."""
        rows = [["", *self.splits]]
        columns = [dict(_table_column(split, self.source, self.target)) for split in self.splits.values()]
        for label in dict.fromkeys(chain.from_iterable(columns)):
            rows.append([label, *(column.get(label, "-") for column in columns)])
        return [*_align(rows), *_remarks(self)]


def report(
    languages: tuple[str, str],
    pairs_by_split: Mapping[str, Iterable[Pair]],
    normalize: Callable[[str], str],
    rules: FilterRules,
) -> DataReport:
    """Count and measure a corpus; only the held-out splits are held in memory.

    Pairs of "train" are filtered as in training, by `normalize` and `rules`; the other splits are held out.
    """
    held_out = {name: list(pairs) for name, pairs in pairs_by_split.items() if name != "train"}
    overlaps = {name: OverlapCounter(pairs, normalize) for name, pairs in held_out.items()}
    measures: dict[str, Measure] = {}
    # As in training: test is held out only if its pairs are dropped from train.
    against = [pairs for name, pairs in held_out.items() if name == "valid" or rules.drop_overlap]
    counting = replace(rules, drop_duplicates=True)  # duplicates are counted, dropped or not
    for name in sorted(pairs_by_split, key=lambda name: name != "train"):
        others = chain.from_iterable(against) if name == "train" else ()
        measures[name] = Measure(PairFilter(counting, normalize, others))
        for pair in measures[name].through(held_out.get(name, pairs_by_split[name])):
            keys = keys_of(pair)
            for other in overlaps.keys() - {name}:
                overlaps[other].note(name, keys)
    train = measures.get("train")
    return DataReport(
        *languages,
        {
            name: measures[name].report(
                used=_training_counts(measures[name].filter.counts, rules) if name == "train" else None,
                train=train if name != "train" else None,
                overlap=overlaps[name].overlaps() if name in overlaps else {},
            )
            for name in pairs_by_split
        },
    )


def _training_counts(counts: FilterCounts, rules: FilterRules) -> FilterCounts:
    return counts if rules.drop_duplicates else replace(counts, duplicate=0)


def _table_column(split: SplitReport, source: str, target: str) -> Iterator[tuple[str, str]]:
    yield "pairs read", f"{split.read:,}"
    if split.filtered:
        yield "pairs kept", f"{split.filtered.kept:,}"
    yield "empty on a side", f"{split.empty:,}"
    yield "duplicates", f"{split.duplicates:,}"
    yield "same text on both sides", f"{split.identical:.2%}"
    for language, side in ((source, split.source), (target, split.target)):
        yield f"{language} characters: mean, median, 99 %, longest", _figures(side.characters)
        yield f"{language} words: mean, median, 99 %, longest", _figures(side.words)
    yield "longer over shorter side: mean, median, 99 %, largest", _figures(split.ratio)
    for other, overlap in split.overlap.items():
        counts = f"{overlap.pairs:,} {overlap.sources:,} {overlap.targets:,}"
        yield f"in {other} too: pairs, sources, targets", counts


def _figures(spread: Spread) -> str:
    return " ".join(f"{value:,.1f}".removesuffix(".0") for value in asdict(spread).values())


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows of cells as lines: labels to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _remarks(report: DataReport) -> Iterator[str]:
    for name, split in report.splits.items():
        for language, side in ((report.source, split.source), (report.target, split.target)):
            if side.unseen and side.unseen.distinct:
                counts = (
                    f"{side.unseen.distinct:,} characters train does not have, {side.unseen.occurrences:,} times"
                )
                yield f"{name}, {language}: {counts}: {' '.join(map(_printable, side.unseen.examples))}"
    for name, split in report.splits.items():
        for language, side in ((report.source, split.source), (report.target, split.target)):
            longest = ", ".join(f"{entry.line:,} ({entry.characters:,} characters)" for entry in side.longest)
            yield f"{name}, {language}: longest lines: {longest or 'none'}"


def _printable(symbol: str) -> str:
    """Return the character, or its code point if it is invisible."""
    return symbol if symbol.isprintable() and not symbol.isspace() else f"U+{ord(symbol):04X}"
