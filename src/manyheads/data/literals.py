"""Find the parts of a text that a translation copies unchanged: addresses, emoji, placeholders and more.

The kinds are in literals.toml, which the web page reads too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from manyheads.data.letters import has_letters

_PART = re.compile("<([a-z_]+)>")
_SIGN = re.compile(  # every literal has one of these; most lines of prose have none
    r"[@{}%<$`\[\\#&+~\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55\U0001f000-\U0001faff]|/\w|__|\*\||-[0-9A-Fa-f]{4}-"
    r"|:(?:(?<!\w:)[A-Za-z+-]|(?<=tel:)\w|(?<=mailto:)\w|//)|\.(?<=\w\.)\w",
    re.ASCII,
)
_BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="  # marks before a literal that are copied with it
_AFTER = re.compile(r"[^\w\s<{@$%]*")  # marks after a literal, likewise


@dataclass(frozen=True)
class Kind:
    """A kind of literals: a table of literals.toml, with its patterns joined."""

    name: str
    pattern: str
    needs: str
    same: bool
    forms: tuple[str, ...]


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
            tuple(kind.get("forms", ())),
        )
        for kind in _table()["kinds"]
    )


@cache
def _join_patterns(needs: tuple[str, ...], *, same: bool) -> re.Pattern[str]:
    """Return the pattern of all kinds, or of those with `same`, whose `needs` are empty or among those given."""
    kinds = [
        kind for kind in literal_kinds() if (kind.same or not same) and (not kind.needs or kind.needs in needs)
    ]
    return re.compile("|".join(kind.pattern for kind in kinds), re.ASCII)


@cache
def _all_needs() -> Sequence[str]:
    return [kind.needs for kind in literal_kinds() if kind.needs]


def _literals_of(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the literals of a text."""
    if not _SIGN.search(text):
        return []
    needs = tuple(needed for needed in _all_needs() if re.search(needed, text))
    return [match.span() for match in _join_patterns(needs, same=False).finditer(text)]


def placeholders_of(text: str) -> list[str]:
    """Return the literals of a text that a translation of it must have too, in order."""
    return _join_patterns((), same=True).findall(text) if _SIGN.search(text) else []


def spans_to_translate(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the parts of a text between literals, without white space at the ends.

    Parts without a letter are left out: numbers and marks are the same in both languages.
    """
    literals = _literals_of(text)
    borders = [0, *(border for span in literals for border in span), len(text)]
    spans = []
    for index in range(0, len(borders), 2):
        start, end = borders[index : index + 2]
        if index and (marks := _AFTER.match(text, start, end)):
            start = marks.end()
        part = text[start:end]
        if end < len(text):
            part = part.rstrip(_BEFORE)
        if has_letters(part):
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(part.strip())))
    return spans
