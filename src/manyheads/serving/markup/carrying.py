"""The tags of a block put around the words of its translation, by which word comes from which."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from manyheads.serving.markup.blocks import Atom, Block, Element

__all__ = ["carry", "escaped"]

WORD = re.compile(r"\S+")
AFTER_A_WORD = ".,;:!?…)]}»”’。，、！？"
BEFORE_A_WORD = "([{«„“‚‘¿¡"
Region = tuple[int, int]


def escaped(text: str) -> str:
    """Text as it stands in HTML."""
    return escape(text, quote=False)


def carry(block: Block, text: str, links: str | None) -> str:
    """A translation with the tags of its source.

    Every tag comes exactly once, and elements are in each other as they were. Where words change their order, an
    element goes where most of its words are.

    Args:
        block: the source.
        text: its translation.
        links: which word of the translation comes from which, as pairs "source-target"; None where that is not
            known, and words are taken to come in the same order.
    """
    if not block.is_tagged:
        return escaped(text)
    carrier = Carrier(block.text, text, links)
    return carrier.filled(block.root, carrier.whole, 0, len(text))


@dataclass
class Placed:
    """Where something goes in the translation: offsets, and what stands there."""

    start: int
    end: int
    order: int
    markup: str = ""
    element: Element | None = None
    region: Region = (0, 0)
    before: str = ""
    behind: str = ""


class Carrier:
    """One block and its translation.

    Words are numbered from 0; regions are (first, last + 1) of the words of the translation.
    """

    def __init__(self, source: str, target: str, links: str | None) -> None:
        self.source, self.target = source, target
        self.source_words = [found.span() for found in WORD.finditer(source)]
        self.words = [found.span() for found in WORD.finditer(target)]
        self.origin = origins(links, len(self.source_words), len(self.words))
        self.whole: Region = (0, len(self.words))

    def filled(self, element: Element, region: Region, start: int, end: int) -> str:
        """The text from start to end, with what is inside the element."""
        out, place = [], start
        for one in self.placed(element, region, start, end):
            out += [escaped(self.target[place : one.start]), one.before]
            if one.element is None:
                out.append(one.markup)
            else:
                inner = self.filled(one.element, one.region, one.start, one.end)
                out += [one.element.opening, inner, one.element.closing]
            out.append(one.behind)
            place = one.end
        return "".join([*out, escaped(self.target[place:end])])

    def placed(self, element: Element, region: Region, start: int, end: int) -> list[Placed]:
        """What is inside an element, each where it goes, in order and apart."""
        found: list[Placed] = []
        taken: set[int] = set()
        for order, one in enumerate(element.inside):
            if isinstance(one, Atom):
                found.append(self.atom(one, element, region, order))
                continue
            words = self.covered(one)
            own = best_run([word in words for word in self.origin], region, taken)
            if own is None:
                at = self.gap(one.start, element, region)
                found.append(Placed(at, at, order, element=one, region=(0, 0)))
                continue
            taken |= set(range(*own))
            first, last = self.edges(one, own)
            found.append(Placed(first, last, order, element=one, region=own))
        return apart(sorted(found, key=lambda one: (one.start, one.order)), start, end)

    def covered(self, element: Element) -> range:
        """The words of the source that an element is around, also in part."""
        first = bisect_right([end for _, end in self.source_words], element.start)
        return range(first, max(first, self.passed(element.end)))

    def passed(self, offset: int) -> int:
        """How many words of the source begin before an offset."""
        return bisect_left([start for start, _ in self.source_words], offset)

    def edges(self, element: Element, region: Region) -> tuple[int, int]:
        """Offsets of a region, without punctuation that the element is not around in the source."""
        start, end = self.words[region[0]][0], self.words[region[1] - 1][1]
        if self.source[element.end : element.end + 1] in tuple(AFTER_A_WORD):
            end = max(start + 1, start + len(self.target[start:end].rstrip(AFTER_A_WORD)))
        if element.start and self.source[element.start - 1] in BEFORE_A_WORD:
            start = min(end - 1, end - len(self.target[start:end].lstrip(BEFORE_A_WORD)))
        return start, end

    def atom(self, atom: Atom, element: Element, region: Region, order: int) -> Placed:
        """Where an atom goes: between words, or at the end of one."""
        at = self.gap(atom.at, element, region)
        behind_word = at > 0 and not self.target[at - 1].isspace()
        before_word = at < len(self.target) and not self.target[at].isspace()
        before = " " if atom.before and behind_word else ""
        behind = " " if atom.behind and before_word and self.target[at] not in AFTER_A_WORD else ""
        return Placed(at, at, order, atom.raw, before=before, behind=behind)

    def gap(self, offset: int, element: Element, region: Region) -> int:
        """The offset in the translation of a place in the source, within a region.

        It parts the words of the translation so that as few as possible come from the other side of the place.
        """
        if region[0] == region[1]:
            return self.words[region[0]][0] if region[0] < len(self.words) else 0
        passed = self.passed(offset)
        inner = self.covered(element) if element.opening else range(len(self.source_words))
        if passed <= inner.start:
            return self.words[region[0]][0]
        # each word that stays before the cut although it comes from behind the place counts 1, its opposite -1
        costs = accumulate((1 if self.origin[word] >= passed else -1 for word in range(*region)), initial=0)
        best = region[0] + min(enumerate(costs), key=lambda pair: pair[1])[0]
        if best == region[0]:
            return self.words[best][0]
        start, end = self.words[best - 1]
        tail = self.source[offset : self.source_words[passed - 1][1]]
        if tail and all(character in AFTER_A_WORD for character in tail):  # it stood before the full stop
            end = max(start + 1, start + len(self.target[start:end].rstrip(AFTER_A_WORD)))
        spaced = self.source[offset - 1 : offset].isspace() and not self.source[offset : offset + 1].isspace()
        glued = not self.source[offset - 1 : offset].isspace() or best == region[1]
        return self.words[best][0] if spaced and not glued else end


def origins(links: str | None, sources: int, targets: int) -> list[int]:
    """For each word of the translation the word of the source that it comes from."""
    found = dict[int, int]()
    for link in (links or "").split():
        source, _, target = link.partition("-")
        found[int(target)] = int(source)
    if links is None:
        found = {word: word * sources // max(1, targets) for word in range(targets)}
    origin: list[int] = []
    for word in range(targets):  # one that comes from nothing goes with the one before it
        last = origin[-1] if origin else 0
        origin.append(min(max(0, found.get(word, last)), max(0, sources - 1)))
    return origin


def best_run(wanted: Sequence[bool], region: Region, taken: set[int]) -> Region | None:
    """The run of free words of a region with the most wanted words and few others; None if none is wanted.

    An unwanted word between two wanted ones costs a little more than half a wanted one.
    """
    best, best_score = None, 0.0
    first, score = region[0], 0.0
    for word in range(*region):
        if word in taken:
            first, score = word + 1, 0.0
            continue
        if score <= 0:
            first, score = word, 0.0
        score += 1.0 if wanted[word] else -0.6
        if score > best_score:
            best, best_score = (first, word + 1), score
    return best


def apart(found: Sequence[Placed], start: int, end: int) -> list[Placed]:
    """The same within start and end, none of them beginning before the one before it ends."""
    for one in found:
        one.start = min(max(one.start, start), end)
        one.end = min(max(one.end, one.start), end)
        start = one.end
    return list(found)
