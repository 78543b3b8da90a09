"""Pictures made of characters, for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from torch import Tensor

__all__ = ["display_width", "fit", "heat_map", "padded", "shade"]

SHADES = " ░▒▓█"


def display_width(text: str) -> int:
    """Columns a text takes in a terminal: two for a wide character such as Hangul, none for a combining mark."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def fit(text: str, width: int) -> str:
    """A text with blanks after it up to so many columns; a longer one is cut, and ends in an ellipsis."""
    if display_width(text) <= width:
        return text + " " * (width - display_width(text))
    kept = ""
    for one in text:
        if display_width(kept + one) > width - 1:
            break
        kept += one
    return kept + "…" + " " * (width - display_width(kept) - 1)


def padded(text: str, width: int) -> str:
    """A text with blanks before it up to so many columns."""
    return " " * (width - display_width(text)) + text


def heat_map(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Lines of shade blocks: weights (T, S) from 0 to 1, one row a target token, one column a source token.

    The columns are named upright below each other, so that long tokens need no room.
    """
    side = max(map(display_width, rows), default=0)
    cell = 2
    lines = [
        padded(row, side) + " │" + "".join(shade(float(weight)) * cell for weight in line)
        for row, line in zip(rows, weights.tolist(), strict=True)
    ]
    lines.append(" " * side + " └" + "─" * (cell * len(columns)))
    for depth in range(max(map(len, columns), default=0)):
        letters = [column[depth] if depth < len(column) else " " for column in columns]
        lines.append(
            (" " * (side + 2) + "".join(one + " " * (cell - display_width(one)) for one in letters)).rstrip()
        )
    return lines


def shade(weight: float) -> str:
    """The block for a weight from 0 to 1."""
    return SHADES[min(len(SHADES) - 1, round(weight * (len(SHADES) - 1)))]
