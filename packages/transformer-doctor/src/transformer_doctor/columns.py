"""Pad and fold lines of text for terminals, where wide characters, such as Hangul, take two columns."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator

DEFAULT_WIDTH, _MAX_WIDTH = 80, 100  # columns; longer lines are hard to read
_FILLER = "\0"  # second column of a wide character
# Beginning of a line: spaces, and a label with the spaces after it.
_LABEL = re.compile(r" *(?:(?:seen|at|what|cause|cure|more) +|\S{1,16} {2,})?")
_LABEL_COLUMNS = 6  # width of "seen", "cause", "cure", "at" and "more" with the blanks after them


def column_width(text: str) -> int:
    """Return the number of columns that a text takes."""
    return len(_widen(text))


def pad_label(label: str, width: int = _LABEL_COLUMNS) -> str:
    """Return a label of a report with blanks up to the column where the text begins."""
    return label + " " * (width - column_width(label))


def terminal_width() -> int | None:
    """Return the number of columns to fold at; None (no folding) if stdout is not a terminal."""
    return min(_MAX_WIDTH, shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns) if sys.stdout.isatty() else None


def fold_lines(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Fold lines between words at `width` columns; continuation lines are indented below the text after the label.

    Wide characters, such as Hangul, take two columns. Words are never split, so that a longer word makes a longer
    line. A width of None folds nothing.
    """
    for line in lines:
        if width is None or len(_widen(line)) <= width:
            yield line
            continue
        match = _LABEL.match(line)
        start = _widen(match[0]) if match else ""
        folded = textwrap.wrap(
            _widen(line)[len(start) :],
            width,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (text.replace(_FILLER, "") for text in folded)


def _widen(text: str) -> str:
    """Return a text with a filler behind each wide character, so that its length is its width in columns."""
    return "".join(letter + _FILLER * (unicodedata.east_asian_width(letter) in "WF") for letter in text)
