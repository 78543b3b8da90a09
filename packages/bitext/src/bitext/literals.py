"""Find the parts of a text that a translation copies unchanged: addresses, emoji, placeholders and more.

The kinds are in literals.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_PART = re.compile("<([a-z_]+)>")
_LAYOUT_SIGN = re.compile(
    r"^[\W\u2460-\u2473]|^\w{1,3}[.)]|[|\t]|   |\\[Nn]|<[Bb][Rr]"
)  # every literal of the layout has one of these
_SIGN = re.compile(  # every other literal has one of these; most lines of prose have none
    r"[@{}%<$`\[\\#&+~*_\u231a-\u23ff\u2600-\u27bf\u2b1b-\u2b55\U0001f000-\U0001faff]|/\w|-[0-9A-Fa-f]{4}-"
    r"|:(?:(?<!\w:)[A-Za-z+-]|(?<=tel:)\w|(?<=mailto:)\w|//)|\.(?<=\w\.)\w",
    re.ASCII,
)


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
        """Return the literals for a page, which finds them in JavaScript."""
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


Kinds = Callable[[], tuple[Kind, ...]]


@cache
def _join_patterns(kinds: Kinds, needs: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of all of these kinds whose `needs` are empty or among those given."""
    return re.compile("|".join(kind.pattern for kind in kinds() if not kind.needs or kind.needs in needs), re.ASCII)


@cache
def _needs_of(kinds: Kinds) -> Sequence[re.Pattern[str]]:
    return [re.compile(kind.needs, re.ASCII) for kind in kinds() if kind.needs]


def literals_of(text: str, kinds: Kinds = literal_kinds) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the literals of a text."""
    if not _LAYOUT_SIGN.search(text) and (kinds is layout_kinds or not _SIGN.search(text)):
        return []
    needs = tuple(needed.pattern for needed in _needs_of(kinds) if needed.search(text))
    return [match.span() for match in _join_patterns(kinds, needs).finditer(text)]


def placeholders_of(text: str) -> list[str]:
    """Return the literals of a text that a translation of it must have too, in order."""
    return _join_patterns(_same_kinds, ()).findall(text) if _SIGN.search(text) else []
