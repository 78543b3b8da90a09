"""Whether a program prints what a page shows, where what it prints depends on what was trained.

Compared is the outline: numbers may be others, what is drawn may be drawn otherwise, and of a line that names
figures only the words before the first figure count. What is left must come in the same order; the program may
print more between (lines of progress).
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["keys", "missing", "outline"]

NUMBER = re.compile(r"[+-]?\d[\d,.:]*")
DRAWN = re.compile(r"[│┌└├█▓▒░▁·]|^ +\S( +\S)*$")  # pictures of characters, pieces of text, letters below a picture

# What a model writes: the translation in the demo, the label of a classifier.
FREE = re.compile(r" *(en)  |(?=positive\t|negative\t)()")


def outline(text: str) -> list[str]:
    """The lines of a text, without what may differ."""
    found: list[str] = []
    for line in text.split("\n"):
        head = "▒" if DRAWN.search(line) and "nrefs" not in line else words(line)
        if head and not (head == "▒" and found[-1:] == ["▒"]):
            found.append(head)
    return found


def words(line: str) -> str:
    """The words of a line before its first figure, and how many figures there are if that is all."""
    if checks := re.match(r"\d+ checks", line):
        return checks[0]
    if free := FREE.match(line):
        return free[1]
    line = re.sub(r"\S*/(?=manyheads )", "", re.sub(r'"[^"]*"', '""', line))
    head = NUMBER.split(line)[0]
    if head.strip():
        return " ".join(head.split())
    return " ".join(NUMBER.sub("#", line).split())


def missing(shown: str, printed: str) -> list[str]:
    """The lines of the outline that a page shows and the program does not print there."""
    there = iter(outline(printed))
    return [line for line in outline(shown) if line not in there]


def keys(document: Any) -> Any:
    """A JSON document without its values: the names of objects, and of lists the first entry."""
    if isinstance(document, dict):
        return {name: keys(value) for name, value in document.items()}
    if isinstance(document, list):
        return [keys(document[0])] if document else []
    return None


def same_keys(shown: str, printed: str) -> bool:
    """Whether two JSON documents have the same shape."""
    return bool(keys(json.loads(shown)) == keys(json.loads(printed)))
