"""Fold long lines between words at the width of the terminal; wide characters, such as Hangul, take two columns."""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["DEFAULT_WIDTH", "fold_lines", "terminal_width"]

DEFAULT_WIDTH, MAX_WIDTH = 80, 100  # columns; longer lines are hard to read
# Beginning of a line: spaces, and a label with the spaces after it.
LABEL = re.compile(r" *(?:(?:seen|cause|cure|page) +|\S{1,16} {2,})?")


def terminal_width() -> int | None:
    """Return the number of columns to fold at; None (no folding) if stdout is not a terminal."""
    return min(MAX_WIDTH, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns) if sys.stdout.isatty() else None


def fold_lines(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Fold lines to at most `width` columns; continuation lines are indented below the text after the label.

    Words are never split, so that a longer word makes a longer line. A width of None folds nothing.
    """
    for line in lines:
        if width is None or display_width(line) <= width:
            yield line
            continue
        match = LABEL.match(line)
        start = match[0] if match else ""
        current = start
        for word in line[len(start) :].split():
            if current.strip() and current != start and display_width(f"{current} {word}") > width:
                yield current.rstrip()
                current = " " * display_width(start)
                start = current
            current += word if current == start else f" {word}"
        yield current.rstrip()


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
