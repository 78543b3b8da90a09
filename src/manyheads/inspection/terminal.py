"""Text of a given width for a terminal, and heat maps made of characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from torch import Tensor

__all__ = ["column_names", "display_width", "fit", "heat_map", "padded", "shade"]

SHADES = " ░▒▓█"


def display_width(text: str) -> int:
    """Return the columns of a text in a terminal: 2 for a wide character such as Hangul, 0 for a combining mark."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def fit(text: str, width: int) -> str:
    """Pad a text at the right to so many columns; a longer text is cut, with an ellipsis."""
    if display_width(text) <= width:
        return text + " " * (width - display_width(text))
    kept = ""
    for one in text:
        if display_width(kept + one) > width - 1:
            break
        kept += one
    return kept + "…" + " " * (width - display_width(kept) - 1)


def padded(text: str, width: int) -> str:
    """Pad a text at the left to so many columns."""
    return " " * (width - display_width(text)) + text


def heat_map(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return lines of shade blocks for weights (T, S) from 0 to 1, a row for each target token.

    The names of the columns run from top to bottom below them.
    """
    side, cell = max(map(display_width, rows), default=0), 2
    lines = [
        padded(row, side) + " │" + "".join(shade(float(weight)) * cell for weight in line)
        for row, line in zip(rows, weights.tolist(), strict=True)
    ]
    lines.append(" " * side + " └" + "─" * (cell * len(columns)))
    return lines + column_names(columns, side + 2, cell)


def column_names(names: Sequence[str], indent: int, cell: int) -> list[str]:
    """Return lines with names from top to bottom, a character a line, each name `cell` columns wide."""
    lines = []
    for depth in range(max(map(len, names), default=0)):
        letters = [name[depth] if depth < len(name) else " " for name in names]
        lines.append((" " * indent + "".join(fit(letter, cell) for letter in letters)).rstrip())
    return lines


def shade(weight: float) -> str:
    """Return the block for a weight from 0 to 1."""
    return SHADES[min(len(SHADES) - 1, round(weight * (len(SHADES) - 1)))]
