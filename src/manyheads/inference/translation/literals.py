"""Find the parts of a line that are translated, and the sentences around the literals that are copied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain

from bitext.letters import has_letters
from bitext.literals import Kinds, layout_kinds, literal_kinds, literals_of
from bitext.unicode import known

_BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="  # marks before a literal that are copied with it
_ORDERED = re.compile(r"[<\[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]])")  # tags, links, emphasis, codes
_BRANCH = re.compile(r",[^{}\\]*\{|\}[^{}\\]*[{}]")  # what begins, parts or ends the branches of a message
_AFTER = re.compile(r"[^\w\s<{@$%]*")  # marks after a literal, likewise


def spans_to_translate(text: str, kinds: Kinds = literal_kinds) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the parts of a line between literals, without white space at the ends.

    Parts without a letter are left out: numbers and marks are the same in both languages.

    Args:
        text: the line.
        kinds: `literal_kinds` or `layout_kinds`.
    """
    literals = literals_of(text, kinds)
    borders = [0, *(border for span in literals for border in span), len(text)]
    spans = []
    for index in range(0, len(borders), 2):
        start, end = borders[index : index + 2]
        if index and not text[start - 1].isspace() and (marks := _AFTER.match(known(text), start, end)):
            start = marks.end()
        part = text[start:end]
        if end < len(text) and not text[end].isspace():
            part = part.rstrip(_BEFORE)
        if has_letters(part):
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(part.strip())))
    return spans


@dataclass(frozen=True)
class Sentence:
    """A part of a line between marks of its layout, with literals inside.

    Attributes:
        start: offset of the part in the line.
        text: the part.
        literals: (start, end) offsets of the literals in the part; those without a letter between them are one.
    """

    start: int
    text: str
    literals: list[tuple[int, int]]

    @property
    def ordered(self) -> bool:
        """Whether the literals must stay in their order, as tags must."""
        return any(_ORDERED.match(self.text, start) for start, _ in self.literals)

    @property
    def texts(self) -> list[str]:
        """The texts before, between and after the literals."""
        borders = [0, *chain.from_iterable(self.literals), len(self.text)]
        return [self.text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True)]

    def within(self, start: int, end: int) -> Sentence:
        """Return the part from `start` to `end` of this one."""
        literals = [
            (first - start, last - start) for first, last in self.literals if start <= first and last <= end
        ]
        return Sentence(self.start + start, self.text[start:end], literals)


def sentences_with_literals(line: str) -> list[Sentence]:
    """Return the parts of a line that have literals inside, and letters beside them.

    Where braces are closed in another literal, the texts are branches of a message, and no sentence together.
    """
    literals = literals_of(line)
    found = []
    for start, end in spans_to_translate(line, layout_kinds) if literals else ():
        spans: list[tuple[int, int]] = []
        for first, last in literals:
            if first < end and start < last:
                if spans and not has_letters(line[spans[-1][1] : first]):
                    first = spans.pop()[0]
                spans.append((first, last))
        if not spans or spans[0][0] < start or end < spans[-1][1]:
            continue
        sentence = Sentence(start, line[start:end], [(first - start, last - start) for first, last in spans])
        marks = [line[slice(*span)] for span in spans]
        branches = any(mark.count("{") != mark.count("}") and _BRANCH.search(mark) for mark in marks)
        if not branches and has_letters("".join(sentence.texts)):
            found.append(sentence)
    return found
