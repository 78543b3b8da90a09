"""Text of a given width for a terminal, and heat maps made of characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from manyheads.views.codec import Array

_SHADES = " ░▒▓█"
_HIDDEN = "·"
_NUMBER, _NARROW = 4, 2  # columns of a cell with a number, and of one without
_MAX_COLUMNS = 100
_COLUMNS_PER_NUMBER = 5  # narrow columns from one number to the next


def fit(text: str, width: int) -> str:
    """Pad a text at the right to `width` columns; a longer text is cut, with an ellipsis."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    start = ""
    for letter in text:
        if cell_len(start + letter) > width - 1:
            break
        start += letter
    return start + "…" + " " * (width - cell_len(start) - 1)


def pad_to_width(text: str, width: int) -> str:
    """Pad a text at the left to `width` columns."""
    return " " * (width - cell_len(text)) + text


def _wrap(parts: Sequence[str], width: int) -> list[str]:
    """Return texts one after another, two blanks apart, in lines of at most `width` columns where they fit."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1]) + 2 + cell_len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(part)
    return lines


def heat_map(
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    width: int = _MAX_COLUMNS,
    high: float = 1.0,
    hidden: NDArray[np.bool_] | None = None,
) -> list[str]:
    """Return lines of shade blocks for values (T, S) from 0 to `high`, a row for each target token.

    A value below 0 has a minus sign before its shade. The names of the columns are above them, and the largest
    value of each row is a number. Where the names do not fit into `width`, the columns are numbered, the name of
    the largest one follows each row, and all names are listed below. `hidden` (T, S) is true for cells without a
    value.
    """
    cells = values.tolist()
    tops = [line.index(max(line, key=abs, default=0)) if line else 0 for line in cells]
    side = max(map(cell_len, rows), default=0)
    room = max(20, width - side - 2)
    sizes = [max(_NUMBER, cell_len(name)) + 1 for name in columns]
    ends, listed, header = [""] * len(rows), [], list(columns)
    if sum(sizes) > room:
        counted = all(name.isdigit() for name in columns)
        if not counted:
            ends = [f" ← {columns[top]} {_brief(line[top])}" for line, top in zip(cells, tops, strict=True)]
            listed = [f"{number} {name}" for number, name in enumerate(columns, start=1)]
            header = [str(number) for number in range(1, len(columns) + 1)]
        room = max(20, room - max(map(cell_len, ends)))
        sizes = [_NUMBER + 1 if (_NUMBER + 1) * len(columns) <= room else _NARROW] * len(columns)
    lines: list[str] = []
    for part in _parts_of(sizes, room):
        part_sizes = [sizes[column] for column in part]
        lines.append(f"{'':{side}}  {_header_line([header[column] for column in part], part_sizes)}".rstrip())
        lines.append(f"{'':{side}} ┌{'─' * sum(part_sizes)}")
        for number, (line, top) in enumerate(zip(cells, tops, strict=True)):
            drawn = "".join(
                fit(_HIDDEN, size)
                if hidden is not None and hidden[number, column]
                else _cell_text(line[column] / (high or 1.0), size, _brief(line[column]) if column == top else "")
                for column, size in zip(part, part_sizes, strict=True)
            )
            lines.append(f"{pad_to_width(rows[number], side)} │{drawn}{ends[number]}".rstrip())
    return [*lines, "", *_wrap(listed, width)] if listed else lines


def _parts_of(sizes: Sequence[int], room: int) -> Iterator[range]:
    """Yield the columns that fit beside each other, all columns in turn."""
    first = 0
    while first < len(sizes):
        last = first + 1
        while last < len(sizes) and sum(sizes[first : last + 1]) <= room:
            last += 1
        yield range(first, last)
        first = last


def _header_line(names: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the names above their columns; of narrow columns, only the first name and every fifth."""
    line, start = "", 0
    for index, (name, size) in enumerate(zip(names, sizes, strict=True)):
        if size > _NARROW or index == 0 or (index + 1) % _COLUMNS_PER_NUMBER == 0:
            line += " " * (start - cell_len(line)) + name
        start += size
    return line


def _cell_text(share: float, size: int, number: str) -> str:
    if number and size > _NARROW:
        return fit(number, size)
    block = _SHADES[round(min(1.0, abs(share)) * (len(_SHADES) - 1))]
    sign = "-" if share < 0 and block != " " else block
    return fit(sign + block * (size - 2), size) if size > _NARROW else sign + block


def _brief(value: float) -> str:
    """Format a number in at most 4 columns: 0.98, -.98, 12.3, -12."""
    for text in (f"{value:.2f}", f"{value:.2f}".replace("0.", ".", 1), f"{value:.1f}"):
        if len(text) <= _NUMBER:
            return text
    return f"{value:.0f}"
