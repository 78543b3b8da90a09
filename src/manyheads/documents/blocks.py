"""Blocks: running text with its inline tags.

Offsets count characters of a block's text. In HTML and Markdown, each run of white space is one blank of the text,
and its ends have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

_MAX_DEPTH = 50  # nested elements; a deeper tag is kept, but handled as one that is never closed
_BLANKS = " \t\r\n\f"
_SPACE = re.compile(f"[{_BLANKS}]+")


def escape_markup(text: str) -> str:
    """Write a text as the content of an element of HTML or XML."""
    return escape(text, quote=False)


@dataclass(frozen=True)
class Token:
    """A token of a block's source: unescaped text, a tag, or an atom (see `Atom`)."""

    kind: Literal["text", "open", "close", "atom"]
    raw: str
    name: str = ""


@dataclass(frozen=True)
class Atom:
    """Inline markup that is not translated and keeps its position: an image, code, a stray tag.

    Attributes:
        raw: its source.
        offset: its offset in the block's text.
        before, behind: whether white space was next to it, whatever tags of elements stood between.
    """

    raw: str
    offset: int
    before: bool
    behind: bool


@dataclass
class Element:
    """An inline element; the root element, without tags, is the block itself.

    Attributes:
        opening, closing: its tags.
        start, end: offsets of its content.
        children: elements and atoms in it, in order.
        wrap: the tags around each stretch of text that is in this element and in none of its children, such as
            those of a run of an office document; empty where text needs none.
    """

    opening: str = ""
    closing: str = ""
    start: int = 0
    end: int = 0
    children: list[Element | Atom] = field(default_factory=list)
    wrap: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Block:
    """Running text with inline tags.

    Attributes:
        text: unescaped text without tags.
        root: the element that holds its tags.
        lead, tail: white space at its ends that is no part of the text.
        escape: writes text of the translation as text of the file.
    """

    text: str
    root: Element
    lead: str = ""
    tail: str = ""
    escape: Callable[[str], str] = escape_markup

    @property
    def is_tagged(self) -> bool:
        """Return whether the block has inline markup."""
        return bool(self.root.children)


def make_block(
    tokens: Sequence[Token], *, escape: Callable[[str], str] = escape_markup, one_blank: bool = True
) -> Block:
    """Return the block of some tokens.

    Args:
        tokens: the tokens, in order.
        escape: writes text of the translation as text of the file.
        one_blank: whether each run of white space is one blank of the text; else it stays as it is.
    """
    text, stack, ends = "", [Element()], _closing_indices(tokens)
    closing = set(ends.values())
    shown = [token for index, token in enumerate(tokens) if index not in ends and index not in closing]
    raws = ["", *(token.raw for token in shown), ""]  # an atom has no white space at its ends
    position = 0  # in `raws`
    for index, token in enumerate(tokens):
        position += index not in ends and index not in closing
        if token.kind == "text":
            text = _append_text(text, token.raw) if one_blank else text + token.raw
        elif index in ends:
            element = Element(token.raw, tokens[ends[index]].raw, len(text))
            stack[-1].children.append(element)
            stack.append(element)
        elif token.kind == "close" and index in closing:
            stack.pop().end = len(text)
        else:
            before, behind = _tail(raws[position - 1]), _lead(raws[position + 1])
            stack[-1].children.append(Atom(token.raw, len(text), bool(before), bool(behind)))
    stack[0].end = len(text)
    if not one_blank:
        return Block(text, stack[0], escape=escape)
    return Block(text.rstrip(" "), stack[0], _lead(raws[1]), _tail(raws[-2]), escape)


def _append_text(text: str, more: str) -> str:
    """Append to a text, with one blank for each run of white space, and none at the beginning."""
    more = _SPACE.sub(" ", more)
    return text + (more[1:] if text[-1:] in ("", " ") and more.startswith(" ") else more)


def _lead(text: str) -> str:
    """Return the white space at the beginning of a text."""
    return text[: len(text) - len(text.lstrip(_BLANKS))]


def _tail(text: str) -> str:
    """Return the white space at the end of a text."""
    return text[len(text.rstrip(_BLANKS)) :]


def _closing_indices(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each opening tag to that of its closing tag; tags that are never closed are left out."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(stack) < _MAX_DEPTH:
            stack.append(index)
        elif token.kind == "close" and any(tokens[opening].name == token.name for opening in stack):
            while tokens[stack[-1]].name != token.name:  # these are never closed
                stack.pop()
            closing[stack.pop()] = index
    return closing
