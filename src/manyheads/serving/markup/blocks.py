"""A stretch of running text with the inline tags in it.

Offsets are characters of the text of a block, in which runs of white space are one blank, as a browser shows them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Atom", "Block", "Element", "Part", "make_block"]

DEEPEST = 50  # elements in each other; a tag further inside stays, but counts as one that is never closed
SPACE = re.compile("[ \t\r\n\f]+")


@dataclass(frozen=True)
class Part:
    """What a block is made of, in order: unescaped text, a tag, or something that is left as it is."""

    kind: Literal["text", "open", "close", "atom"]
    raw: str
    name: str = ""


@dataclass(frozen=True)
class Atom:
    """Something that is not translated and goes where it was: an image, code, a stray tag.

    Attributes:
        raw: as it stood in the source.
        at: its offset.
        before, behind: whether there was a blank.
    """

    raw: str
    at: int
    before: bool
    behind: bool


@dataclass
class Element:
    """An inline element; the outermost one, without tags, is the block itself.

    Attributes:
        opening, closing: its tags.
        start, end: offsets of what it is around.
        inside: what is in it beside text, in order.
    """

    opening: str = ""
    closing: str = ""
    start: int = 0
    end: int = 0
    inside: list[Element | Atom] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A stretch of running text.

    Attributes:
        text: without tags, unescaped.
        root: its tags.
        raw: as it stood in the source.
    """

    text: str
    root: Element
    raw: str

    @property
    def is_tagged(self) -> bool:
        """Whether there are tags in it."""
        return bool(self.root.inside)


def make_block(parts: Sequence[Part], raw: str) -> Block:
    """The block of some parts, which stood in the source as `raw`."""
    text, stack, ends = "", [Element()], closing_places(parts)
    closing = set(ends.values())
    for place, part in enumerate(parts):
        if part.kind == "text":
            text = joined(text, part.raw)
        elif place in ends:
            element = Element(part.raw, parts[ends[place]].raw, len(text))
            stack[-1].inside.append(element)
            stack.append(element)
        elif part.kind == "close" and place in closing:
            stack.pop().end = len(text)
        else:
            behind = next((one.raw for one in parts[place:] if one.kind == "text"), "")
            atom = Atom(part.raw, len(text), text.endswith(" "), SPACE.match(behind) is not None)
            stack[-1].inside.append(atom)
    stack[0].end = len(text)
    return Block(text, stack[0], raw)


def joined(text: str, more: str) -> str:
    """Text and what follows it, with one blank where there were several."""
    more = SPACE.sub(" ", more)
    return text + (more[1:] if text.endswith(" ") and more.startswith(" ") else more)


def closing_places(parts: Sequence[Part]) -> dict[int, int]:
    """For each tag that opens an element the place of the one that closes it; only elements that stand in order."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    for place, part in enumerate(parts):
        if part.kind == "open" and len(waiting) < DEEPEST:
            waiting.append(place)
        elif part.kind == "close" and any(parts[one].name == part.name for one in waiting):
            while parts[waiting[-1]].name != part.name:  # those in between are never closed
                waiting.pop()
            found[waiting.pop()] = place
    return found
