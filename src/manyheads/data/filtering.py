"""Which pairs of a corpus are used, and what became of the others.

Filtering goes pair by pair and remembers a hash of each.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from manyheads.config.schema import DataConfig
from manyheads.data.corpus import Pair
from manyheads.data.seen import SeenHashes
from manyheads.errors import DataError

__all__ = [
    "FilterCounts",
    "PairFilter",
    "digest",
    "fault_of_document",
    "fault_of_labelled",
    "fault_of_pair",
    "fault_of_text",
    "require_pairs",
]

CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # those that are no white space


@dataclass(frozen=True)
class FilterCounts:
    """What became of the pairs read.

    Attributes:
        read: all of them.
        empty: dropped because a side had no text.
        ratio: dropped because one side was more than data.max_ratio times as long as the other.
        overlap: dropped because the same pair stands in the held-out text.
        duplicate: dropped because the same pair occurred before.
        too_long: dropped because a side had more than data.max_length tokens.
        source_overlap: kept, but the source stands in the held-out text with another translation or label.
        control_characters: removed from the texts.
        replaced_bytes: bytes that were no UTF-8, now U+FFFD.
    """

    read: int
    empty: int = 0
    ratio: int = 0
    overlap: int = 0
    duplicate: int = 0
    too_long: int = 0
    source_overlap: int = 0
    control_characters: int = 0
    replaced_bytes: int = 0

    @property
    def dropped(self) -> int:
        """Pairs not used, for whatever reason."""
        return self.empty + self.ratio + self.overlap + self.duplicate + self.too_long

    @property
    def kept(self) -> int:
        """Pairs that are used."""
        return self.read - self.dropped

    def describe(self, noun: str = "pairs", other: str = "translation") -> str:
        """All that is not zero, as one line for people; the words are those of `Reading`."""
        reasons = listed(
            (self.empty, "empty"),
            (self.ratio, "of too unlike lengths"),
            (self.overlap, "also held out"),
            (self.duplicate, "duplicate"),
            (self.too_long, "too long"),
        )
        remarks = listed(
            (self.control_characters, "control characters removed"),
            (self.replaced_bytes, "invalid bytes replaced"),
            (self.source_overlap, f"source{'s' * (self.source_overlap != 1)} also held out with another {other}"),
        )
        head = f"{self.read:,} {noun} read, {self.kept:,} kept"
        return head + (f": {reasons}" if reasons else "") + (f"; {remarks}" if remarks else "")


def listed(*parts: tuple[int, str]) -> str:
    """The counts above zero, each with its words."""
    return ", ".join(f"{count:,} {words}" for count, words in parts if count)


def digest(*texts: str) -> int:
    """64 bits that stand for some texts: among 20 million, two are taken for one with a chance of 1 in 90,000."""
    joined = "".join(f"{len(text)}:{text}" for text in texts)
    return int.from_bytes(hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=8).digest())


def fault_of_pair(pair: Pair, config: DataConfig) -> str | None:
    """Of two translations: "empty" when one has no text, "ratio" when their lengths are too unlike."""
    if not pair.source.strip() or not pair.target.strip():
        return "empty"
    shorter, longer = sorted((len(pair.source), len(pair.target)))
    return "ratio" if longer > config.max_ratio * shorter else None


def fault_of_labelled(pair: Pair, config: DataConfig) -> str | None:
    """Of a text and its label: "empty" when it has no text."""
    return None if pair.source.strip() and pair.target.strip() else "empty"


def fault_of_document(pair: Pair, config: DataConfig) -> str | None:
    """Of plain text: "empty" when there is none."""
    return None if pair.target.strip() else "empty"


def fault_of_text(pair: Pair, config: DataConfig) -> str | None:
    """Of what a language model reads: "empty" when a text has none; lines of a whole file may be so."""
    return None if config.documents == "file" else fault_of_document(pair, config)


class PairFilter:
    """Normalises pairs one by one, judges them, and counts: for corpora that do not fit in memory."""

    def __init__(
        self,
        config: DataConfig,
        normalize: Callable[[str], str],
        held_out: Iterable[Pair] = (),
        fault: Callable[[Pair, DataConfig], str | None] = fault_of_pair,
    ) -> None:
        """Set up; validation and test sets stay whole.

        Args:
            config: max_ratio, drop_duplicates and drop_overlap decide.
            normalize: makes the text of one side clean.
            held_out: pairs of valid and test. A pair that stands there exactly is dropped; one that shares only
                its source is kept and counted.
            fault: what is wrong with a pair by itself, as a name of a count.
        """
        self.config = config
        self.fault = fault
        self.normalize = normalize
        self.tally: Counter[str] = Counter()
        self.seen = SeenHashes()
        self.held_pairs: set[int] = set()
        self.held_sources: set[int] = set()
        for pair in held_out:
            source, target = normalize(pair.source), normalize(pair.target)
            self.held_pairs.add(digest(source, target))
            self.held_sources.add(digest(source))

    def used(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Those of a corpus that are used, normalised; afterwards `counts` are those of this corpus."""
        self.tally.clear()
        return (pair for pair in map(self.clean, pairs) if self.keeps(pair))

    def clean(self, pair: Pair) -> Pair:
        """The pair normalised; what that removed is counted."""
        source, target = self.normalize(pair.source), self.normalize(pair.target)
        if source != pair.source or target != pair.target:
            before = len(CONTROL.findall(pair.source)) + len(CONTROL.findall(pair.target))
            after = len(CONTROL.findall(source)) + len(CONTROL.findall(target))
            self.tally["control_characters"] += before - after
        self.tally["replaced_bytes"] += pair.replaced
        return Pair(source, target, pair.line, pair.replaced)

    def keeps(self, pair: Pair) -> bool:
        """Whether a normalised pair is used; counted once, under the first reason against it."""
        self.tally["read"] += 1
        reason = self.reason_against(pair)
        if reason is None and pair.source and digest(pair.source) in self.held_sources:
            self.tally["source_overlap"] += 1
        self.tally[reason or "kept"] += 1
        return reason is None

    def reason_against(self, pair: Pair) -> str | None:
        """The name of the count a pair falls under, or none."""
        fault = self.fault(pair, self.config)
        if fault is not None:
            return fault
        key = digest(pair.source, pair.target)
        if self.config.drop_overlap and key in self.held_pairs:
            return "overlap"
        if self.config.drop_duplicates and not self.seen.add(key):
            return "duplicate"
        return None

    @property
    def counts(self) -> FilterCounts:
        """What became of the pairs of this corpus so far."""
        tally = self.tally
        return FilterCounts(
            read=tally["read"],
            empty=tally["empty"],
            ratio=tally["ratio"],
            overlap=tally["overlap"],
            duplicate=tally["duplicate"],
            source_overlap=tally["source_overlap"],
            control_characters=tally["control_characters"],
            replaced_bytes=tally["replaced_bytes"],
        )


def require_pairs(count: int, split: str, counts: FilterCounts | None = None, noun: str = "pairs") -> None:
    """Refuse to go on with nothing.

    Raises:
        DataError: there are no pairs; the message says what became of those that were read.
    """
    if not count:
        what = f": {counts.describe(noun)}" if counts else ""
        languages = ", data.source, data.target" if noun == "pairs" else ""
        raise DataError(f"data.{split} leaves no {noun}{what}. Check its files{languages} and the limits.")
