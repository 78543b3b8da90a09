"""What is noted of the text of a split, line by line, while it passes."""

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
from manyheads.doctor.known import Example
from manyheads.doctor.splits import near_keys, text_of

__all__ = ["LabelTally", "NearCopies", "Noted", "PairTally", "TextTally"]

EXAMPLES = 3  # lines quoted
LETTERS = re.compile(r"[\W_]+")
LEAST_WORDS = 4  # of a copy that counts: shorter ones are names, numbers, exclamations
WORDS_LEARNT_FROM = 20_000  # pairs


@dataclass
class Noted:
    """Lines that show something: how many, and the first of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """One more."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Example(line, text))


class TextTally:
    """Of the lines of one side, or of plain text: damage, by its kind."""

    def __init__(self) -> None:
        self.lines = 0
        self.damaged: dict[str, Noted] = {}

    def add(self, text: str, line: int) -> None:
        """One line."""
        self.lines += 1
        kind = damage(text)
        if kind is not None:
            self.damaged.setdefault(kind, Noted()).add(line, text)


class PairTally:
    """Of the pairs of a split.

    Attributes:
        copied: the target is the source, but for case and punctuation.
        swapped: each side looks like the language of the other.
        only_source, only_target: both sides look like the source's language, or like the target's.
        told: pairs of which it could be told which language a side is in.
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
        """Note pairs, and hand them on."""
        for pair in pairs:
            if pair.source.strip() and pair.target.strip():
                self.add(pair)
            yield pair

    def add(self, pair: Pair) -> None:
        """One pair with text on both sides."""
        texts = pair.source, pair.target
        for place, text in enumerate(texts):
            self.sides[place].add(text, pair.line)
            self.lengths[place].append(len(text))
            if self.tell is None and len(self.lines) < WORDS_LEARNT_FROM:
                self.words[place].update(WORD.findall(text.casefold()))
        self.lines.append(pair.line)
        if len(pair.source.split()) >= LEAST_WORDS and plain(pair.source) == plain(pair.target):
            self.copied.add(pair.line, pair.source)
        elif self.tell is not None:
            self.note_languages(pair, self.tell)

    def note_languages(self, pair: Pair, tell: Tell) -> None:
        """What the two sides look like."""
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
        """With text on both sides."""
        return len(self.lines)

    def alignment(self) -> Alignment | None:
        """How the lengths of the two sides go together."""
        return measure_alignment(self.lengths[0], self.lengths[1])


class LabelTally:
    """Of the texts of a split and their labels.

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
        """Note examples, and hand them on."""
        for pair in pairs:
            self.text.add(pair.source, pair.line)
            self.classes[pair.target] += 1
            if self.labels.setdefault(hash(pair.source.strip()), pair.target) != pair.target:
                self.conflicts.add(pair.line, f"{pair.target}: {pair.source}")
            yield pair


class NearCopies:
    """Which pairs of a held-out split nearly stand in train: the same words, or all but one; not the very pair."""

    def __init__(self, held_out: Iterable[Pair]) -> None:
        self.pairs = list(held_out)
        self.keys: dict[tuple[str, ...], list[int]] = {}
        for place, pair in enumerate(self.pairs):
            for key in near_keys(text_of((pair.source, pair.target))):
                self.keys.setdefault(key, []).append(place)
        self.met: set[int] = set()

    def through(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Look at pairs of train, and hand them on."""
        for pair in pairs:
            for key in near_keys(text_of((pair.source, pair.target))):
                for place in self.keys.get(key, ()):
                    held = self.pairs[place]
                    if (held.source, held.target) != (pair.source, pair.target):
                        self.met.add(place)
            yield pair

    def noted(self) -> Noted:
        """Those that were met."""
        found = Noted()
        for place in sorted(self.met):
            found.add(self.pairs[place].line, self.pairs[place].source)
        return found


def plain(text: str) -> str:
    """Letters and digits alone, in lower case."""
    return LETTERS.sub("", text.casefold())
