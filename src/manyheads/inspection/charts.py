"""Charts as plain data: what all pictures, tables and files of an inspection are made from.

Every chart has the table of its values (`data`), so that whatever is drawn can also be read.
Shapes: R rows, C columns, L layers, H heads.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.inspection.beam_tree import BeamTree
from manyheads.inspection.codec import Array

__all__ = [
    "Bars",
    "Cell",
    "Chart",
    "HeatMap",
    "Line",
    "Lines",
    "Links",
    "Table",
    "Thumbnails",
    "Tree",
    "heat_map_chart",
    "shown",
    "visible",
]

Cell = str | int | float | None
Marks = NDArray[np.bool_]

CONTROLS = {"\n": "↵", "\r": "␍", "\t": "⇥"}
UNSEEN = ("Cc", "Cs", "Co", "Zl", "Zp")
BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Table:
    """Rows of values under named columns."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def data(self) -> Table:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Values as shades.

    Attributes:
        rows, columns: their names; none where there are too many to read.
        values: (R, C).
        low, high: what the darkest and the lightest shade stand for.
        hidden: (R, C) cells that cannot have a value, drawn as such; None is none.
        row_title, column_title: what the rows and columns are.
    """

    title: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    low: float
    high: float
    hidden: Marks | None
    row_title: str
    column_title: str
    data: Table


@dataclass(frozen=True)
class Bars:
    """Values as bars, one below the other.

    Attributes:
        values: one for each label; below `low` none.
        low, high: ends of the axis; bars begin at 0.
        details: what is written beside each.
        doubtful: bars that are drawn as such.
        value_title: what the values are.
    """

    title: str
    note: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    low: float
    high: float
    details: tuple[str, ...]
    doubtful: tuple[bool, ...]
    value_title: str
    data: Table

    def number(self, value: float) -> str:
        """A value as it stands beside its bar: whole where all are."""
        return f"{value:,.0f}" if all(one.is_integer() for one in self.values) else f"{value:.3f}"


@dataclass(frozen=True)
class Line:
    """One curve, its points in the order of x."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Lines:
    """Curves over a common axis."""

    title: str
    note: str
    lines: tuple[Line, ...]
    x_title: str
    y_title: str
    data: Table


@dataclass(frozen=True)
class Links:
    """Two rows of words with lines between them; each link is (above, below, weight 0 to 1)."""

    title: str
    note: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    above_title: str
    below_title: str
    data: Table


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """A small heat map for each layer and head, with its entropy."""

    title: str
    note: str
    weights: Array
    entropy: Array
    data: Table


@dataclass(frozen=True)
class Tree:
    """A beam search."""

    title: str
    note: str
    tree: BeamTree
    data: Table


Chart = Table | HeatMap | Bars | Lines | Links | Thumbnails | Tree


def visible(text: str) -> str:
    """A text without what a terminal or a page would obey instead of showing: line ends become ↵, and so on."""
    return "".join(
        CONTROLS.get(one, "\ufffd") if unicodedata.category(one) in UNSEEN or one in BIDI else one for one in text
    )


def shown(cell: Cell) -> str:
    """A value as people read it: a number with 4 significant digits, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 10_000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else visible(str(cell))


def heat_map_chart(
    title: str,
    note: str,
    rows: list[str],
    columns: list[str],
    values: Array,
    *,
    row_title: str,
    column_title: str,
    low: float = 0.0,
    high: float = 1.0,
    hidden: Marks | None = None,
) -> HeatMap:
    """A heat map with the table of its values: a line a row, a column a column."""
    named = [*columns, *map(str, range(len(columns), values.shape[1]))]
    lines = [*rows, *map(str, range(len(rows), values.shape[0]))]
    table = Table(
        title,
        note,
        (f"{row_title} \\ {column_title}", *named),
        tuple(
            (name, *(round(value, 6) for value in line)) for name, line in zip(lines, values.tolist(), strict=True)
        ),
    )
    return HeatMap(
        title, note, tuple(rows), tuple(columns), values, low, high, hidden, row_title, column_title, table
    )
