"""Filter the pairs of a corpus, and count the dropped pairs by reason.

One pair at a time is held in memory, and a hash of each pair.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields

from bitext.letters import has_text
from bitext.pairs import Pair

_MIN_SLOTS = 1_024  # slots of a hash set; always a power of two
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # control characters that are not white space


@dataclass(frozen=True)
class FilterCounts:
    """Number of pairs read, and of pairs dropped by reason.

    Attributes:
        read: all pairs read.
        empty: dropped because a side had no text.
        ratio: dropped because one side was too many times as long as the other.
        overlap: dropped because the same pair is in the held-out text.
        duplicate: dropped because the same pair occurred before.
        too_long: dropped because a side had too many tokens.
        source_overlap: kept, but the source is in the held-out text with another translation or label.
        control_characters: number of characters removed from the texts.
    """

    read: int
    empty: int = 0
    ratio: int = 0
    overlap: int = 0
    duplicate: int = 0
    too_long: int = 0
    source_overlap: int = 0
    control_characters: int = 0

    @property
    def dropped(self) -> int:
        """Number of pairs dropped, all reasons together."""
        return self.empty + self.ratio + self.overlap + self.duplicate + self.too_long

    @property
    def kept(self) -> int:
        """Number of pairs kept."""
        return self.read - self.dropped

    def describe(self, noun: str = "pairs", other: str = "translation") -> str:
        """Return the counts above zero as one line of text, with the nouns of an example and of its second part."""
        reasons = _list_counts(
            (self.empty, "empty"),
            (self.ratio, "of too unlike lengths"),
            (self.overlap, "also held out"),
            (self.duplicate, "duplicate"),
            (self.too_long, "too long"),
        )
        remarks = _list_counts(
            (self.control_characters, "control characters removed"),
            (self.source_overlap, f"source{'s' * (self.source_overlap != 1)} also held out with another {other}"),
        )
        head = f"{self.read:,} {noun} read, {self.kept:,} kept"
        return head + (f": {reasons}" if reasons else "") + (f"; {remarks}" if remarks else "")


def _list_counts(*parts: tuple[int, str]) -> str:
    return ", ".join(f"{count:,} {words}" for count, words in parts if count)


def digest(*texts: str) -> int:
    """Hash texts to 64 bits: among 20 million, a collision has a probability of 1 in 90,000."""
    joined = "".join([f"{len(text)}:{text}" for text in texts])
    return int.from_bytes(hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=8).digest())


def fault_of_pair(pair: Pair, max_ratio: float) -> str | None:
    """Return "empty" if a side has no text, "ratio" if a side is more than `max_ratio` times as long, else None."""
    if not (has_text(pair.source) and has_text(pair.target)):
        return "empty"
    shorter, longer = sorted((len(pair.source), len(pair.target)))
    return "ratio" if longer > max_ratio * shorter else None


@dataclass(frozen=True)
class FilterRules:
    """The rules by which a pair is dropped.

    Attributes:
        fault: returns the reason to drop a pair regardless of other pairs, the name of its count, or None.
        drop_duplicates: whether a pair is dropped that occurred before.
        drop_overlap: whether a pair is dropped that is in the held-out text.
    """

    fault: Callable[[Pair], str | None]
    drop_duplicates: bool = True
    drop_overlap: bool = True


class PairFilter:
    """Normalise, filter and count pairs one by one: for corpora that do not fit in memory."""

    def __init__(self, rules: FilterRules, normalize: Callable[[str], str], held_out: Iterable[Pair] = ()) -> None:
        """Create a filter for training pairs; validation and test sets are not filtered.

        A pair equal to one of `held_out` is dropped; a pair with only an equal source is kept and counted.
        """
        self.rules = rules
        self.normalize = normalize
        self.tally: Counter[str] = Counter()
        self.seen = _SeenHashes()
        self.held_pairs: set[int] = set()
        self.held_sources: set[int] = set()
        for pair in held_out:
            source, target = normalize(pair.source), normalize(pair.target)
            self.held_pairs.add(digest(source, target))
            self.held_sources.add(digest(source))

    def used(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the normalised pairs that are kept; the counts are reset first."""
        self.tally.clear()
        return (pair for pair in map(self.clean, pairs) if self.keeps(pair))

    def clean(self, pair: Pair) -> Pair:
        """Normalise a pair and count the removed characters."""
        source, target = self.normalize(pair.source), self.normalize(pair.target)
        if source != pair.source or target != pair.target:
            before = len(_CONTROL.findall(pair.source)) + len(_CONTROL.findall(pair.target))
            after = len(_CONTROL.findall(source)) + len(_CONTROL.findall(target))
            self.tally["control_characters"] += before - after
        return Pair(source, target, pair.line)

    def keeps(self, pair: Pair) -> bool:
        """Return whether a normalised pair is kept; a dropped pair counts under the first reason that applies."""
        self.tally["read"] += 1
        reason = self.reason_against(pair)
        if reason is None and pair.source and digest(pair.source) in self.held_sources:
            self.tally["source_overlap"] += 1
        self.tally[reason or "kept"] += 1
        return reason is None

    def reason_against(self, pair: Pair) -> str | None:
        """Return the reason to drop a pair, the name of its count, or None to keep it."""
        fault = self.rules.fault(pair)
        if fault is not None:
            return fault
        key = digest(pair.source, pair.target)
        if self.rules.drop_overlap and key in self.held_pairs:
            return "overlap"
        if self.rules.drop_duplicates and not self.seen.add(key):
            return "duplicate"
        return None

    @property
    def counts(self) -> FilterCounts:
        """Counts of this corpus so far."""
        return FilterCounts(**{field.name: self.tally[field.name] for field in fields(FilterCounts)})


class _SeenHashes:
    """Set of 64-bit hashes, 16 to 32 bytes each: open addressing with linear probing; 0 marks a free slot."""

    def __init__(self) -> None:
        self.slots = array("Q", bytes(8 * _MIN_SLOTS))
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def add(self, value: int) -> bool:
        """Add a hash; return False if the set already contains it."""
        value = value or 1  # a hash of 0 is stored as 1: a chance of one in 2 ** 64
        if not _put(self.slots, value):
            return False
        self.count += 1
        if 2 * self.count > len(self.slots):
            grown = array("Q", bytes(16 * len(self.slots)))
            for old in self.slots:
                if old:
                    _put(grown, old)
            self.slots = grown
        return True


def _put(slots: array[int], value: int) -> bool:
    """Put a value into the first free slot from its hash slot on; return False if it is already present."""
    mask = len(slots) - 1
    slot = value & mask
    while (present := slots[slot]) != 0:
        if present == value:
            return False
        slot = (slot + 1) & mask
    slots[slot] = value
    return True
