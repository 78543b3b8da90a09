"""Tag projection: inline tags of a block are placed in its translation by the word alignment."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from manyheads.documents.blocks import Atom, Block, Element

_WORD = re.compile(r"\S+")
_AFTER_A_WORD = ".,;:!?…)]}»”’。，、！？"
_BEFORE_A_WORD = "([{«„“‚‘¿¡"
_Region = tuple[int, int]


def project_tags(block: Block, text: str, links: str | None) -> str:
    """Return the source of a translation, with the tags of its block.

    Every tag occurs exactly once, and elements stay nested as they were. Where the word order changes, an element
    goes around the run with most of its words.

    Args:
        block: the source.
        text: its translation.
        links: the word alignment as pairs "source-target", separated by blanks; None means a monotone alignment.
    """
    projector = _TagProjector(block, text, links if block.is_tagged else None)
    return f"{block.lead}{projector.render(block.root, projector.whole, 0, len(text))}{block.tail}"


@dataclass
class _PlacedMarkup:
    """An element or atom with its offsets in the translation.

    Attributes:
        start, end: offsets in the translation.
        markup: the element or atom.
        region: words of the translation in the element.
    """

    start: int
    end: int
    markup: Element | Atom
    region: _Region = (0, 0)


class _TagProjector:
    """Places the tags of one block in its translation.

    Words are numbered from 0. A region is (first, last + 1) of words of the translation.
    """

    def __init__(self, block: Block, target: str, links: str | None) -> None:
        self.source, self.target, self.escape = block.text, target, block.escape
        source = self.source
        self.source_words = [match.span() for match in _WORD.finditer(source)]
        self.words = [match.span() for match in _WORD.finditer(target)]
        self.aligned = aligned_words(links, len(self.source_words), len(self.words))
        self.whole: _Region = (0, len(self.words))

    def render(self, element: Element, region: _Region, start: int, end: int) -> str:
        parts, offset = [], start
        for child in self.place_children(element, region, start, end):
            parts.append(self.text_of(element, offset, child.start))
            if isinstance(child.markup, Atom):
                parts.append(self.with_blanks(child.markup, child.start, " ".join(element.wrap)))
            else:
                inner = self.render(child.markup, child.region, child.start, child.end)
                parts += [child.markup.opening, inner, child.markup.closing]
            offset = child.end
        return "".join([*parts, self.text_of(element, offset, end)])

    def text_of(self, element: Element, start: int, end: int) -> str:
        opening, closing = element.wrap if start < end else ("", "")
        return f"{opening}{self.escape(self.target[start:end])}{closing}"

    def place_children(self, element: Element, region: _Region, start: int, end: int) -> list[_PlacedMarkup]:
        """Return the children of an element with their offsets, in order and without overlap."""
        placed: list[_PlacedMarkup] = []
        taken: set[int] = set()
        for child in element.children:
            words = range(0) if isinstance(child, Atom) else self.source_words_in(child)
            run = _best_run([word in words for word in self.aligned], region, taken) if words else None
            if isinstance(child, Element) and run is not None:
                taken |= set(range(*run))
                first, last = self.edges(child, run)
            else:
                offsets = [child.offset] if isinstance(child, Atom) else [child.start, child.end]
                cut = self.cut(offsets[0], element, region)
                first, last, run = self.gap(cut, offsets[0]), self.gap(cut, offsets[-1]), (cut, cut)
            placed.append(_PlacedMarkup(first, last, child, run))
        placed.sort(key=lambda markup: markup.start)
        for markup in placed:  # within start and end, and behind its predecessor
            markup.start = min(max(markup.start, start), end)
            markup.end = min(max(markup.end, markup.start), end)
            start = markup.end
        return placed

    def source_words_in(self, element: Element) -> range:
        first = bisect_right([end for _, end in self.source_words], element.start)
        return range(first, max(first, self.words_before(element.end)))

    def words_before(self, offset: int) -> int:
        return bisect_left([start for start, _ in self.source_words], offset)

    def edges(self, element: Element, region: _Region) -> tuple[int, int]:
        """Return the offsets of a region, without punctuation that is outside the element in the source."""
        start, end = self.words[region[0]][0], self.word_end(region[1] - 1, element.end)
        if self.source[element.end - 1 : element.end].isspace() and self.target[end : end + 1].isspace():
            end += 1
        if element.start and self.source[element.start - 1] in _BEFORE_A_WORD:
            start = min(end - 1, end - len(self.target[start:end].lstrip(_BEFORE_A_WORD)))
        if self.source[element.start].isspace() and self.target[max(0, start - 1) : start].isspace():
            start -= 1
        return start, end

    def with_blanks(self, atom: Atom, offset: int, blank: str) -> str:
        """Return the source of an atom with the blanks of its source that the translation lacks at its offset."""
        last, following = self.target[max(0, offset - 1) : offset], self.target[offset : offset + 1]
        after_word, before_word = last.strip() != "", following.strip() != ""
        if after_word and following in tuple(_AFTER_A_WORD):
            before_word = False
        return f"{blank * (atom.before and after_word)}{atom.raw}{blank * (atom.behind and before_word)}"

    def cut(self, offset: int, element: Element, region: _Region) -> int:
        """Return the number of words of the translation before an offset in the source, within a region.

        The cut is chosen so that as few words as possible are on the other side of it than their aligned words.
        """
        passed = self.words_before(offset)
        inner = self.source_words_in(element) if element.opening else range(len(self.source_words))
        # a word before the cut costs 1 if its aligned word is behind the offset, else -1
        costs = accumulate((1 if self.aligned[word] >= passed else -1 for word in range(*region)), initial=0)
        return region[0] + (min(enumerate(costs), key=lambda pair: pair[1])[0] if passed > inner.start else 0)

    def gap(self, cut: int, offset: int) -> int:
        """Return the offset in the translation, behind a number of words, for an offset in the source.

        It is behind white space, and before punctuation, where it is so in the source.
        """
        end = self.word_end(cut - 1, offset) if cut else 0
        following = self.words[cut][0] if cut < len(self.words) else len(self.target)
        if cut and end < self.words[cut - 1][1]:
            return end
        return min(following, end + offset - len(self.source[:offset].rstrip()))

    def word_end(self, word: int, offset: int) -> int:
        """Return the end of a word of the translation, without punctuation that follows an offset in the source."""
        start, end = self.words[word]
        before, following = self.source[:offset].rstrip()[-1:], self.source[offset:].partition(" ")[0]
        if following and not following.strip(_AFTER_A_WORD) and before not in _AFTER_A_WORD:
            end = max(start + 1, start + len(self.target[start:end].rstrip(_AFTER_A_WORD)))
        return end


def aligned_words(links: str | None, sources: int, targets: int) -> list[int]:
    """Return the aligned source word of each word of the translation.

    Args:
        links: see `project_tags`.
        sources: number of words of the source.
        targets: number of words of the translation.
    """
    alignment = dict[int, int]()
    for link in (links or "").split():
        source, _, target = link.partition("-")
        alignment[int(target)] = int(source)
    if links is None:
        alignment = {word: word * sources // max(1, targets) for word in range(targets)}
    aligned: list[int] = []
    for word in range(targets):  # a word without a link goes with the word before it
        last = aligned[-1] if aligned else 0
        aligned.append(min(max(0, alignment.get(word, last)), max(0, sources - 1)))
    return aligned


def _best_run(inside: Sequence[bool], region: _Region, taken: set[int]) -> _Region | None:
    """Return the run of free words of a region with the highest score, or None if no word is inside the element.

    A word inside the element adds 1 to the score of a run, any other word subtracts 0.6.
    """
    best, best_score = None, 0.0
    first, score = region[0], 0.0
    for word in range(*region):
        if word in taken:
            first, score = word + 1, 0.0
            continue
        if score <= 0:
            first, score = word, 0.0
        score += 1.0 if inside[word] else -0.6
        if score > best_score:
            best, best_score = (first, word + 1), score
    return best
