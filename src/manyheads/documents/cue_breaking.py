"""Break a translation into the subtitles that its source runs over, and these into lines.

Widths are counted in columns: a letter of full width has two, a combining mark none.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from manyheads.documents.tag_projection import aligned_words
from manyheads.documents.units import Translated

# Letters and marks that no blanks surround, as the content of a class of characters: Chinese and Japanese.
UNSPACED = "\u3001-\u301f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff5e\U00020000-\U0003ffff"
_BEFORE_A_WORD, _AFTER_A_WORD = "「『（【《〈［", "、。，．！？：；…」』）】》〉］ーっゃゅょッャュョ々・"
# Between two chunks a text may be cut: a chunk is a word, or a letter of a script without blanks.
_CHUNK = re.compile(
    rf"[{_BEFORE_A_WORD}]*(?:[\u30a0-\u30ff]+|[^\s{UNSPACED}]+|[{UNSPACED}])[{_AFTER_A_WORD}]*|[{_BEFORE_A_WORD}]+"
)
_WORD = re.compile(r"\S+")
_MAX_LINES = 2
_SHORT_WORD = 4  # letters of an article or a preposition
_WINDOW = 16  # places that are tried on either side of the best one by word alignment
# Costs of a cut. A word in another subtitle than its source word costs 1.
_BY_LENGTH = 0.1  # the same where only lengths tell the source word
_TOO_FAST = 100.0, 0.2  # a column that cannot be read in time: where all can be, and elsewhere
_TOO_MANY = 1000.0  # a line
_PHRASE = 0.3  # no punctuation mark before the cut; twice as much if a short word is before it
_BALANCE = 0.5  # one line is longer than the other by the maximum


class Slot(NamedTuple):
    """The place of a subtitle for its part of a translation.

    Attributes:
        text: its part of the source.
        start: offset of this part in the source.
        columns: maximum width that can be read in its time.
        line_length: maximum width of a line.
        lines, longest: number of lines of the source, and the width of the longest.
    """

    text: str
    start: int
    columns: float
    line_length: int
    lines: int = 1
    longest: int = 0


def width(text: str) -> int:
    """Return the width of a text in columns."""
    seen = (letter for letter in text if unicodedata.category(letter) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in seen)


def break_text(source: str, translated: Translated, slots: Sequence[Slot]) -> list[Translated]:
    r"""Return the part of a translation in each slot, with "\n" between lines, and its links within the slot.

    That all can be read in time, in two lines, is more important than words in the slot of their source words, and
    these are more important than cuts behind punctuation. If there are fewer words than slots, some show the same.
    """
    breaker = _Breaker(source, translated.text, translated.links)
    total, count = len(breaker.spans), len(slots)
    parts = [(index * total // count, min(total, index * total // count + 1)) for index in range(count)]
    if total >= count:
        for price in _TOO_FAST:
            parts = breaker.parts(slots, price)
            if all(breaker.width(*part) <= slot.columns for part, slot in zip(parts, slots, strict=True)):
                break
    return [breaker.part(*part, slot) for part, slot in zip(parts, slots, strict=True)]


class _Breaker:
    """Finds the places where a text is cut. A place is the number of chunks before it."""

    def __init__(self, source: str, text: str, links: str | None) -> None:
        self.text = text
        self.spans = [match.span() for match in _CHUNK.finditer(text)]
        columns = list(accumulate(map(width, text), initial=0))
        self.starts = [columns[start] for start, _ in self.spans]
        self.ends = [columns[end] for _, end in self.spans]
        words = [match.span() for match in _WORD.finditer(source)]
        if is_aligned := links is not None and len(text.split()) == len(self.spans):
            aligned = aligned_words(links, len(words), len(self.spans))
        else:
            aligned, words = [0] * len(self.spans), [(0, len(source))]
        self.cost_of_word = 1.0 if is_aligned else _BY_LENGTH
        # offset of each chunk in the source; chunks with the same aligned word share its letters in order
        letters, self.positions = Counter[int](), list[float]()
        for word, (start, end) in zip(aligned, self.spans, strict=True):
            letters[word] += end - start
            self.positions.append(letters[word] - (end - start) / 2)
        for chunk, word in enumerate(aligned):
            start, end = words[word]
            self.positions[chunk] = start + (end - start) * self.positions[chunk] / letters[word]

    def width(self, first: int, last: int) -> int:
        return self.ends[last - 1] - self.starts[first]

    def parts(self, slots: Sequence[Slot], price: float) -> list[tuple[int, int]]:
        """Return the cheapest parts for the slots by dynamic programming; none is empty.

        Args:
            slots: the slots.
            price: cost of a column that cannot be read in time.
        """
        total = len(self.spans)
        reached: dict[int, tuple[float, list[int]]] = {0: (0.0, [0])}  # place -> cost, places up to it
        for index, slot in enumerate(slots, 1):
            window, costs = range(total, total + 1), [0.0] * (total + 1)
            if index < len(slots):
                sides = (1 if position >= slots[index].start else -1 for position in self.positions)
                misplaced = list(accumulate(sides, initial=0))  # words in the wrong slot, but for a constant
                lowest, highest = index, total - len(slots) + index
                best = min(max(misplaced.index(min(misplaced)), lowest), highest)
                window = range(max(lowest, best - _WINDOW), min(highest, best + _WINDOW) + 1)
                costs = [self.cost_of_word * words + self.cost_behind(at) for at, words in enumerate(misplaced)]
            further = {}
            for place in window:
                ways = [
                    (cost + self.cost_of_part(first, place, slot, price), [*places, place])
                    for first, (cost, places) in reached.items()
                    if first < place
                ]
                if ways:
                    cost, places = min(ways)
                    further[place] = cost + costs[place], places
            reached = further
        return list(pairwise(reached[total][1]))

    def cost_of_part(self, first: int, last: int, slot: Slot, price: float) -> float:
        lines = self.full_lines(first, last, max(slot.line_length, slot.longest))
        too_many = len(lines) - max(_MAX_LINES, slot.lines)
        return price * max(0, self.width(first, last) - slot.columns) + _TOO_MANY * max(0, too_many)

    def cost_behind(self, place: int) -> float:
        """Return the cost of a cut by the word before it."""
        word = self.text[slice(*self.spans[max(0, place - 1)])]
        return _PHRASE * word[-1].isalnum() * (2 if word.islower() and len(word) <= _SHORT_WORD else 1)

    def full_lines(self, first: int, last: int, length: int) -> list[int]:
        """Return the places where lines end if each is filled."""
        places = list[int]()
        while first < last:
            first = max(bisect_right(self.ends, self.starts[first] + length, first, last), first + 1)
            places.append(first)
        return places

    def lines(self, first: int, last: int, slot: Slot) -> list[int]:
        """Return the places where lines end: two are balanced, or cut behind punctuation."""
        full = self.full_lines(first, last, slot.line_length)
        if len(full) > _MAX_LINES and slot.longest > slot.line_length:
            return self.lines(first, last, slot._replace(line_length=slot.longest))
        if last - first < 2 or len(full) > _MAX_LINES:
            return full
        if len(full) == 1 and (slot.lines == 1 or 2 * self.width(first, last) <= slot.line_length):
            return full

        def cost(place: int) -> float:
            upper, lower = self.width(first, place), self.width(place, last)
            excess = max(0, upper - slot.line_length) + max(0, lower - slot.line_length)
            return _TOO_MANY * excess + _BALANCE * abs(upper - lower) / slot.line_length + self.cost_behind(place)

        return [min(range(first + 1, last), key=cost), last]

    def part(self, first: int, last: int, slot: Slot) -> Translated:
        """Return the lines of some chunks, and the links of their words to those of the slot's source."""
        words = [match.start() for match in _WORD.finditer(slot.text)]
        chunks = [start for start, _ in self.spans]
        lines, links, number = list[str](), list[str](), 0
        for begin, end in pairwise([first, *self.lines(first, last, slot)]):
            start, stop = self.spans[begin][0], self.spans[end - 1][1]
            lines.append(self.text[start:stop])
            for match in _WORD.finditer(self.text, start, stop):
                position = self.positions[bisect_right(chunks, match.start()) - 1] - slot.start
                if 0 <= position < len(slot.text):
                    links.append(f"{bisect_right(words, position) - 1}-{number}")
                number += 1
        return Translated("\n".join(lines), " ".join(links))
