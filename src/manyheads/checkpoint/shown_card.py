"""The model card of a run as the page shows it, its licence, and the card in Korean."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from manyheads.checkpoint import RunDirectory

_FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
# The first words of each pair are those of model_cards.toml and model_cards.ko.toml.
_NOT_STATED = {"to be filled in by you": "not stated", "직접 적어 주세요": "적혀 있지 않음"}
_NAME = re.compile(r"\{(\w+)\}")
_ESCAPED_NAME = re.compile(r"\\\{(\w+)\\\}")  # a name in braces, as re.escape writes it
_LICENCE = re.compile(r"^license: *([\w.-]+)", re.MULTILINE)


def licence_of(card: str) -> str:
    """Return the licence that a card names, or ""."""
    match = _LICENCE.search(card)
    return match[1] if match else ""


@cache
def _korean_sentences() -> list[tuple[re.Pattern[str], str]]:
    """Return the pattern of each English sentence of a card, with its replacement in Korean."""
    texts = tomllib.loads(Path(__file__).with_name("model_cards.ko.toml").read_text("utf-8"))
    patterns = (_ESCAPED_NAME.sub(r"(?P<\1>.+)", re.escape(english)) for english in texts)
    replacements = (_NAME.sub(r"\\g<\1>", korean) for korean in texts.values())
    return [
        (re.compile(f"^{pattern}$", re.MULTILINE), text)
        for pattern, text in zip(patterns, replacements, strict=True)
    ]


def korean_card(card: str) -> str:
    """Return a card, or a line of one, in Korean; code, names and what its author wrote stay as they are."""
    for english, korean in _korean_sentences():
        card = english.sub(korean, card)
    return card


def write_korean_card(folder: Path) -> None:
    """Write the model card of a run or an export in Korean, where the folder has one."""
    run = RunDirectory(folder)
    if card := run.card():
        run.describe(korean_card(card))


def shown_card(card: str) -> dict[str, Any]:
    """Return a card for the page: its licence, and its blocks in English and in Korean."""
    return {"licence": licence_of(card), "blocks": _blocks(card), "korean": _blocks(korean_card(card))}


def _blocks(card: str) -> list[list[str]]:
    """Return the blocks of a card as [tag, text], such as ["h2", "..."].

    The code, which needs the run directory, is left out; what is still to be filled in is "not stated".
    """
    blocks: list[list[str]] = []
    tags: list[str] = []
    for token in MarkdownIt("commonmark").parse(_FRONT_MATTER.sub("", card)):
        if token.type == "inline":
            text = "".join(child.content or " " * (child.type == "softbreak") for child in token.children or ())
            for gap, words in _NOT_STATED.items():
                text = text.replace(gap, words)
            blocks.append(["li" if "li" in tags else tags[-1], text])
        elif token.nesting > 0:
            tags.append(token.tag)
        elif token.nesting < 0:
            tags.pop()
    return blocks
