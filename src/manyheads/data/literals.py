"""Find the parts of a text that a translation copies unchanged: addresses, emoji, placeholders and more.

The kinds are in literals.toml, which the web page reads too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from manyheads.data.letters import has_letters
from manyheads.unicode import known

_PART = re.compile("<([a-z_]+)>")
_LAYOUT_SIGN = re.compile(
    r"^[\W\u2460-\u2473]|^\w{1,3}[.)]|[|\t]|   |\\[Nn]|<[Bb][Rr]"
)  # every literal of the layout has one of these
_SIGN = re.compile(  # every other literal has one of these; most lines of prose have none
    r"[@{}%<$`\[\\#&+~*_\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55\U0001f000-\U0001faff]|/\w|-[0-9A-Fa-f]{4}-"
    r"|:(?:(?<!\w:)[A-Za-z+-]|(?<=tel:)\w|(?<=mailto:)\w|//)|\.(?<=\w\.)\w",
    re.ASCII,
)
_BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="  # marks before a literal that are copied with it
_ORDERED = re.compile(r"[<\[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]])")  # tags, links, emphasis, codes
_BRANCH = re.compile(r",[^{}\\]*\{|\}[^{}\\]*[{}]")  # what begins, parts or ends the branches of a message
_AFTER = re.compile(r"[^\w\s<{@$%]*")  # marks after a literal, likewise


@dataclass(frozen=True)
class Kind:
    """A kind of literals: a table of literals.toml, with its patterns joined."""

    name: str
    pattern: str
    needs: str
    same: bool
    layout: bool
    forms: tuple[str, ...]

    def for_page(self) -> dict[str, str | bool]:
        """Return the literals for a page (web/text/literals.js)."""
        return {"pattern": self.pattern, "needs": self.needs, "layout": self.layout}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("literals.toml").read_text(encoding="utf-8"))


@cache
def literal_fields() -> tuple[str, ...]:
    """Return words that name a field of a program, in small letters."""
    return tuple(_table()["fields"].split())


@cache
def literal_kinds() -> tuple[Kind, ...]:
    """Return the kinds of literals in the order in which they are tried."""
    cases = [change(field) for change in (str.lower, str.upper, str.capitalize) for field in literal_fields()]
    parts: dict[str, str] = {**_table()["parts"], "field": f"(?:{'|'.join(cases)})"}

    def complete(pattern: str) -> str:
        return _PART.sub(lambda match: complete(parts[match[1]]) if match[1] in parts else match[0], pattern)

    return tuple(
        Kind(
            kind["name"],
            "|".join(map(complete, kind["patterns"])),
            kind.get("needs", ""),
            kind.get("same", False),
            kind.get("layout", False),
            tuple(kind.get("forms", ())),
        )
        for kind in _table()["kinds"]
    )


def layout_kinds() -> tuple[Kind, ...]:
    """Return the kinds that are copied whatever the settings: marks before and between the texts of a document."""
    return tuple(kind for kind in literal_kinds() if kind.layout)


def _same_kinds() -> tuple[Kind, ...]:
    return tuple(kind for kind in literal_kinds() if kind.same)


_Kinds = Callable[[], tuple[Kind, ...]]


@cache
def _join_patterns(kinds: _Kinds, needs: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of all of these kinds whose `needs` are empty or among those given."""
    return re.compile("|".join(kind.pattern for kind in kinds() if not kind.needs or kind.needs in needs), re.ASCII)


@cache
def _needs_of(kinds: _Kinds) -> Sequence[re.Pattern[str]]:
    return [re.compile(kind.needs, re.ASCII) for kind in kinds() if kind.needs]


def _literals_of(text: str, kinds: _Kinds = literal_kinds) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the literals of a text."""
    if not _LAYOUT_SIGN.search(text) and (kinds is layout_kinds or not _SIGN.search(text)):
        return []
    needs = tuple(needed.pattern for needed in _needs_of(kinds) if needed.search(text))
    return [match.span() for match in _join_patterns(kinds, needs).finditer(text)]


def placeholders_of(text: str) -> list[str]:
    """Return the literals of a text that a translation of it must have too, in order."""
    return _join_patterns(_same_kinds, ()).findall(text) if _SIGN.search(text) else []


def spans_to_translate(text: str, kinds: _Kinds = literal_kinds) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the parts of a line between literals, without white space at the ends.

    Parts without a letter are left out: numbers and marks are the same in both languages.

    Args:
        text: the line.
        kinds: `literal_kinds` or `layout_kinds`.
    """
    literals = _literals_of(text, kinds)
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
    literals = _literals_of(line)
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
