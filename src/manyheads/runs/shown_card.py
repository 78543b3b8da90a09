"""The model card of a run as the page shows it, and its licence."""

from __future__ import annotations

import re
from typing import Any

from markdown_it import MarkdownIt

_FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
_TO_FILL_IN = "to be filled in by you"  # as in model_cards.toml
_LICENCE = re.compile(r"^license: *([\w.-]+)", re.MULTILINE)


def licence_of(card: str) -> str:
    """Return the licence that a card names, or ""."""
    match = _LICENCE.search(card)
    return match[1] if match else ""


def shown_card(card: str) -> dict[str, Any]:
    """Return a card for the page: its licence, and its blocks as [tag, text], such as ["h2", "..."].

    The code, which needs the run directory, and text that is still to be filled in are left out.
    """
    blocks: list[list[str]] = []
    tags: list[str] = []
    for token in MarkdownIt("commonmark").parse(_FRONT_MATTER.sub("", card)):
        if token.type == "inline":
            text = "".join(child.content or " " * (child.type == "softbreak") for child in token.children or ())
            if _TO_FILL_IN not in text:
                blocks.append(["li" if "li" in tags else tags[-1], text])
        elif token.nesting > 0:
            tags.append(token.tag)
        elif token.nesting < 0:
            tags.pop()
    return {"licence": licence_of(card), "blocks": blocks}
