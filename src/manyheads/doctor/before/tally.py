"""Counts of the text of a split, collected line by line while the text is read."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from manyheads.data.corpus import Pair
from manyheads.doctor.before.alignment import Alignment, measure_alignment
from manyheads.doctor.before.damage import damage
from manyheads.doctor.before.languages import WORD, Tell
from manyheads.doctor.evidence import Example
from manyheads.doctor.splits import near_keys, text_of

__all__ = ["LabelTally", "NearCopies", "Noted", "PairTally", "TextTally"]

EXAMPLES = 3  # lines quoted
LETTERS = re.compile(r"[\W_]+")
LEAST_WORDS = 4  # of a copy that counts: shorter ones are names, numbers, exclamations
WORDS_LEARNT_FROM = 20_000  # pairs


@dataclass
class Noted:
    """Number of lines that show a defect, and the first of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Count a line, and keep it if it is among the first."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Example(line, text))


class TextTally:
    """Damaged lines of one side, or of plain text, by the kind of damage."""

    def __init__(self) -> None:
        self.lines = 0
        self.damaged: dict[str, Noted] = {}

    def add(self, text: str, line: int) -> None:
        """Count a line."""
        self.lines += 1
        kind = damage(text)
        if kind is not None:
            self.damaged.setdefault(kind, Noted()).add(line, text)


class PairTally:
    """Counts of the pairs of a split.

    Attributes:
        copied: the target is the source, but for case and punctuation.
        swapped: each side looks like the language of the other.
        only_source, only_target: both sides look like the source's language, or like the target's.
        told: pairs with a side whose language could be recognised.
    """

    def __init__(self, tell: Tell | None) -> None:
        self.tell = tell
        self.sides = TextTally(), TextTally()
        self.lengths = array("q"), array("q")
        self.lines = array("q")
        self.words: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self.copied, self.swapped, self.only_source, self.only_target = Noted(), Noted(), Noted(), Noted()
        self.told = 0

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Count pairs and yield them."""
        for pair in pairs:
            if pair.source.strip() and pair.target.strip():
                self.add(pair)
            yield pair

    def add(self, pair: Pair) -> None:
        """Count a pair with text on both sides."""
        texts = pair.source, pair.target
        for index, text in enumerate(texts):
            self.sides[index].add(text, pair.line)
            self.lengths[index].append(len(text))
            if self.tell is None and len(self.lines) < WORDS_LEARNT_FROM:
                self.words[index].update(WORD.findall(text.casefold()))
        self.lines.append(pair.line)
        if len(pair.source.split()) >= LEAST_WORDS and plain(pair.source) == plain(pair.target):
            self.copied.add(pair.line, pair.source)
        elif self.tell is not None:
            self.note_languages(pair, self.tell)

    def note_languages(self, pair: Pair, tell: Tell) -> None:
        """Count the languages of the two sides."""
        looks = tell(pair.source), tell(pair.target)
        self.told += None not in looks
        shown = f"{pair.source} ||| {pair.target}"
        match looks:
            case ("target", "source"):
                self.swapped.add(pair.line, shown)
            case ("source", "source"):
                self.only_source.add(pair.line, shown)
            case ("target", "target"):
                self.only_target.add(pair.line, shown)

    @property
    def pairs(self) -> int:
        """Return the number of pairs with text on both sides."""
        return len(self.lines)

    def alignment(self) -> Alignment | None:
        """Return the correlation of the lengths of the two sides."""
        return measure_alignment(self.lengths[0], self.lengths[1])


class LabelTally:
    """Counts of the texts of a split and their labels.

    Attributes:
        classes: texts of each label.
        conflicts: texts that came before with another label.
    """

    def __init__(self) -> None:
        self.text = TextTally()
        self.classes: Counter[str] = Counter()
        self.conflicts = Noted()
        self.labels: dict[int, str] = {}  # of the hash of a text

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Count examples and yield them."""
        for pair in pairs:
            self.text.add(pair.source, pair.line)
            self.classes[pair.target] += 1
            if self.labels.setdefault(hash(pair.source.strip()), pair.target) != pair.target:
                self.conflicts.add(pair.line, f"{pair.target}: {pair.source}")
            yield pair


class NearCopies:
    """Pairs of a held-out split with a near copy in train: the same words, or all but one; not the same pair."""

    def __init__(self, held_out: Iterable[Pair]) -> None:
        self.pairs = list(held_out)
        self.keys: dict[tuple[str, ...], list[int]] = {}
        for index, pair in enumerate(self.pairs):
            for key in near_keys(text_of((pair.source, pair.target))):
                self.keys.setdefault(key, []).append(index)
        self.met: set[int] = set()

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Compare pairs of train and yield them."""
        for pair in pairs:
            for key in near_keys(text_of((pair.source, pair.target))):
                for index in self.keys.get(key, ()):
                    held = self.pairs[index]
                    if (held.source, held.target) != (pair.source, pair.target):
                        self.met.add(index)
            yield pair

    def noted(self) -> Noted:
        """Return the held-out pairs with a near copy."""
        found = Noted()
        for index in sorted(self.met):
            found.add(self.pairs[index].line, self.pairs[index].source)
        return found


def plain(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return LETTERS.sub("", text.casefold())
