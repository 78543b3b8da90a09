"""Long lines folded between words, as wide as a terminal is; Hangul and the like take two columns."""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["USUAL", "folded", "terminal_width"]

USUAL, WIDEST = 80, 100  # columns; longer lines are hard to read
# What a line begins with: blanks, and a label with the blanks after it.
LABEL = re.compile(r" *(?:(?:seen|cause|cure|page) +|\S{1,16} {2,})?")


def terminal_width() -> int | None:
    """Columns to fold at; None where nobody reads: not in a terminal."""
    return min(WIDEST, shutil.get_terminal_size((USUAL, 24)).columns) if sys.stdout.isatty() else None


def folded(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Lines of at most so many columns, a longer one going on below its own beginning; words stay whole."""
    for line in lines:
        if width is None or columns(line) <= width:
            yield line
            continue
        found = LABEL.match(line)
        start = found[0] if found else ""
        now = start
        for word in line[len(start) :].split():
            if now.strip() and now != start and columns(f"{now} {word}") > width:
                yield now.rstrip()
                now = " " * columns(start)
                start = now
            now += word if now == start else f" {word}"
        yield now.rstrip()


def columns(text: str) -> int:
    """Columns a text takes."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)
