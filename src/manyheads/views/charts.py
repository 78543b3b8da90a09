"""Charts as plain data, from which all pictures, tables and files of an inspection are made.

Every chart has the table of its values (`data`), so that everything that is drawn can also be read.
Shapes: R rows, C columns, L layers, H heads.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from manyheads.views.beam_tree import BeamTree
from manyheads.views.codec import Array
from manyheads.views.words import localize

Cell = str | int | float | None
BoolArray = NDArray[np.bool_]

_CONTROLS = {"\n": "↵", "\r": "␍", "\t": "⇥"}
_UNSEEN = ("Cc", "Cs", "Co", "Zl", "Zp")
_NOT_XML = frozenset("\ufffe\uffff")  # an SVG with one of these cannot be read
_NEAR_ZERO = 0.4  # share of the highest value; an axis whose values come lower begins at 0
_MANY_POWERS = 5  # an axis with more powers of ten has no number between them
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Table:
    """Rows of values under named columns."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def data(self) -> Table:
        """Return the table itself."""
        return self


@dataclass(frozen=True, eq=False)
class Drawing:
    """Base of the charts that are drawn; `data` has the title, the note and the drawn values."""

    data: Table

    @property
    def title(self) -> str:
        """Return the title."""
        return self.data.title

    @property
    def note(self) -> str:
        """Return the line below the title."""
        return self.data.note


@dataclass(frozen=True)
class Axis:
    """The meaning of the rows or columns of a heat map, and their names; no names if there are too many to read."""

    title: str
    names: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Values as shades.

    Attributes:
        title, note: title, and the line below it.
        rows, columns: axes.
        values: (R, C).
        legend: meaning of the values, with their unit.
        high: value of the lightest shade; 0 has the darkest.
        signed: whether the shades go from -high to high on a scale of two colours, in which 0 is white.
        hidden: (R, C) True for cells without a value, which are drawn crossed out; None if there are none.
        hidden_title: meaning of these cells.
    """

    title: str
    note: str
    rows: Axis
    columns: Axis
    values: Array
    legend: str = ""
    high: float = 1.0
    signed: bool = False
    hidden: BoolArray | None = None
    hidden_title: str = field(default_factory=lambda: localize("masked"))

    @property
    def low(self) -> float:
        """Return the value at the low end of the scale."""
        return -self.high if self.signed else 0.0

    @property
    def data(self) -> Table:
        """Return the values with 6 decimals; rows and columns without a name are numbered."""
        height, width = self.values.shape
        names = [*self.rows.names, *map(str, range(len(self.rows.names), height))]
        columns = [*self.columns.names, *map(str, range(len(self.columns.names), width))]
        rows = [round_cells(name, *line) for name, line in zip(names, self.values.tolist(), strict=True)]
        return Table(self.title, self.note, (f"{self.rows.title} \\ {self.columns.title}", *columns), tuple(rows))


@dataclass(frozen=True)
class Bar:
    """One bar with the text beside it; a doubtful bar is marked."""

    label: str
    value: float
    detail: str = ""
    doubtful: bool = False


@dataclass(frozen=True, eq=False)
class Bars(Drawing):
    """Bars below each other, each from 0 to its value.

    Attributes:
        bars: from top to bottom.
        low, high: ends of the axis.
        value_title: meaning of the values, with their unit.
        doubt: meaning of the mark of doubtful bars.
    """

    bars: tuple[Bar, ...]
    low: float = 0.0
    high: float = 1.0
    value_title: str = field(default_factory=lambda: localize("probability"))
    doubt: str = ""

    def number(self, value: float) -> str:
        """Format a value: without decimals if all values are integers."""
        return f"{value:,.0f}" if all(bar.value.is_integer() for bar in self.bars) else f"{value:.3f}"


@dataclass(frozen=True)
class Line:
    """One curve, its points in the order of x."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Lines(Drawing):
    """Curves over a common axis; on a logarithmic y axis, values that are not positive are drawn at its low end."""

    lines: tuple[Line, ...]
    x_title: str
    y_title: str
    logarithmic: bool = field(default=False, kw_only=True)

    def extent(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (lowest, highest) x and (lowest, highest) y of the axes; at least one curve has a point.

        The y axis begins at 0 unless all values are far above it. A single value is in the middle.
        """
        x = [value for line in self.lines for value in line.x]
        y = [value for line in self.lines for value in line.y]
        if self.logarithmic:
            positive = [value for value in y if value > 0] or [1.0]
            low, high = min(positive), max(positive)
            return _widen(min(x), max(x)), (low, high) if low < high else (low / 2, high * 2)
        low = 0.0 if 0 < min(y) < _NEAR_ZERO * max(y) else min(y)
        return _widen(min(x), max(x)), _widen(low, max(y))

    def height(self, value: float, low: float, high: float) -> float:
        """Return the position of a value on a y axis: 0 at `low`, 1 at `high`."""
        if not self.logarithmic:
            return fraction(value, low, high)
        return fraction(math.log(max(value, low)), math.log(low), math.log(high))

    def y_ticks(self, low: float, high: float) -> list[float]:
        """Return round numbers of a y axis; if it is logarithmic and long, 1, 2 and 5 times powers of ten."""
        if self.logarithmic:
            powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
            factors = (1, 2, 5) if len(powers) <= _MANY_POWERS else (1,)
            numbers = [power * factor for power in powers for factor in factors if low <= power * factor <= high]
            if len(numbers) > 2:
                return numbers
        return ticks(low, high)


@dataclass(frozen=True, eq=False)
class Links(Drawing):
    """Two columns of words with lines between them; each link is (source, target, weight 0 to 1)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    source_title: str
    target_title: str
    legend: str = field(default_factory=lambda: localize("attention weight"))


@dataclass(frozen=True, eq=False)
class Thumbnails(Drawing):
    """A small heat map for each layer and head, with its entropy: (L, H, R, C) and (L, H).

    All of them have the same axes; `legend` is the meaning of the shades.
    """

    weights: Array
    entropy: Array
    rows: Axis
    columns: Axis
    legend: str = ""


@dataclass(frozen=True, eq=False)
class Tree(Drawing):
    """A beam search."""

    tree: BeamTree


Chart = Table | HeatMap | Bars | Lines | Links | Thumbnails | Tree


def round_cells(*cells: Cell) -> tuple[Cell, ...]:
    """Return a row of a table, its numbers with 6 decimals."""
    return tuple(round(cell, 6) if isinstance(cell, float) else cell for cell in cells)


def visible(text: str) -> str:
    """Replace the characters that control a terminal or a page instead of being shown; a line end becomes ↵."""
    return "".join(
        _CONTROLS.get(letter, "\ufffd")
        if unicodedata.category(letter) in _UNSEEN or letter in _BIDI or letter in _NOT_XML
        else letter
        for letter in text
    )


def shown(cell: Cell) -> str:
    """Format a value for people: a number with 4 significant digits, "" for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 10_000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else visible(str(cell))


def _widen(low: float, high: float) -> tuple[float, float]:
    return (low, high) if low < high else (low - (abs(low) or 1.0), high + (abs(high) or 1.0))


def minus(number: str) -> str:
    """Return a number as it is drawn: with a minus sign instead of a hyphen."""
    return number.replace("-", "−")


def fraction(value: float, low: float, high: float) -> float:
    """Return the position of a value in a range: 0 at `low`, 1 at `high`, which may be below `low`."""
    return (value - low) / ((high - low) or 1.0)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` + 1 round numbers from low to high, 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """Format a number of an axis as briefly as possible: 20k, 6,989, 0.005."""
    if abs(value) >= 1_000:
        return f"{value:,.0f}" if value % 100 else f"{value / 1_000:g}k"
    return f"{round(value, 10):g}"
