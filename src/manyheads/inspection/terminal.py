"""Text of a given width for a terminal, and heat maps made of characters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from torch import Tensor

__all__ = ["column_names", "fit", "heat_map", "padded", "shade"]

SHADES = " ░▒▓█"


def fit(text: str, width: int) -> str:
    """Pad a text at the right to so many columns; a longer text is cut, with an ellipsis."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    kept = ""
    for letter in text:
        if cell_len(kept + letter) > width - 1:
            break
        kept += letter
    return kept + "…" + " " * (width - cell_len(kept) - 1)


def padded(text: str, width: int) -> str:
    """Pad a text at the left to so many columns."""
    return " " * (width - cell_len(text)) + text


def heat_map(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return lines of shade blocks for weights (T, S) from 0 to 1, a row for each target token.

    The names of the columns run from top to bottom below them.
    """
    side, cell = max(map(cell_len, rows), default=0), 2
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
