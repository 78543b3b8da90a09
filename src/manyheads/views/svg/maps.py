"""Heat maps: with a number in each cell if they are few, else shades alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from manyheads.views.charts import HeatMap, Thumbnails, fraction, minus, ticks
from manyheads.views.codec import Array
from manyheads.views.colours import INK, hexadecimal, ink_on, shade
from manyheads.views.svg.canvas import FONT_SIZE, SMALL, Canvas, clip, text_width, widest
from manyheads.views.words import localize

_CELL, _NUMBERED_CELL, _SLANTED_CELL = 30, 24, 20  # largest cell; smallest with a number, and with a slanted name
_MAX_NUMBERED_CELLS = 900
_MAX_HEIGHT, _BARE_HEIGHT = 900, 560  # height of all cells, with names and without
_MAX_NAME_WIDTH = 150  # longer names are cut; in narrow pictures a third of the width
_PITCH = 9  # smallest distance of two names
_SMALLEST_NAME = 8
_TITLE = 18  # height of the title of an axis
_TALL = {0: 0.0, -45: 0.75, -90: 1.0}  # height of a name at this angle over its width
_SHADES = 32
_HATCH = "#b5b5b5"
_SCALE_STEP, _SCALE_STEPS = 6, 24
_SMALL_CELL, _MIN_SMALL_CELL = 12, 5  # of a small heat map
_GAP = 14


def draw_heat_map(chart: HeatMap, room: float) -> Canvas:
    """Draw the names of the columns, the cells with the names of rows at their left, and a scale below."""
    canvas = Canvas()
    rows, columns = chart.values.shape
    most = min(_MAX_NAME_WIDTH, room / 3)
    row_names, column_names = (
        [clip(name, most) for name in names] for names in (chart.rows.names, chart.columns.names)
    )
    title = _row_title(chart.rows.title, rows * min(_CELL, room / (columns + 3)))
    left = _TITLE * len(title) + (widest(row_names) if row_names else 30) + 6
    overhang = text_width(column_names[-1]) * 0.7 if column_names else 12
    height = _MAX_HEIGHT if row_names else _BARE_HEIGHT
    size = max(1.0, min(_CELL, (room - left - overhang) / max(columns, 1), height / max(rows, 1)))
    turn = _turn_of(column_names, size)
    top = _TITLE + 4 + max(14.0, widest(column_names) * _TALL[turn] + 6)
    _draw_column_names(canvas, column_names or columns, left, top, size, turn)
    _draw_row_names(canvas, row_names or rows, left, top, size)
    if row_names and column_names and size >= _NUMBERED_CELL and rows * columns <= _MAX_NUMBERED_CELLS:
        _draw_numbered_cells(canvas, chart, left, top, size)
    else:
        _draw_shades(canvas, chart, left, top, size)
    _draw_axis_titles(canvas, title, chart.columns.title, (left, top), (columns * size, rows * size))
    masked = chart.hidden is not None and bool(chart.hidden.any())
    _draw_scale(canvas, chart, min(left, room / 3), canvas.height + 20, chart.hidden_title if masked else "")
    return canvas


def _row_title(title: str, height: float) -> list[str]:
    """Return the title of the rows in one line, or in a line for each part if it is longer than `height`."""
    return [title] if text_width(title, SMALL) <= height else title.split(", ")


def _draw_axis_titles(
    canvas: Canvas, rows: list[str], columns: str, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    """Draw the title of the columns at the top, and the lines of the title of the rows at the left, turned."""
    (left, top), (width, height) = corner, size
    canvas.text(max(_TITLE, left + (width - text_width(columns, SMALL)) / 2), 11, columns, size=SMALL)
    for index, line in enumerate(rows):
        high = text_width(line, SMALL)
        canvas.text(11 + 14 * index, max(top + (height + high) / 2, high + 4), line, turn=-90, size=SMALL)


def _labels(names: Sequence[str] | int, size: float) -> list[tuple[int, str]]:
    """Return the names that fit, or round numbers for a number of rows or columns, each with its index."""
    if isinstance(names, int):
        return [(int(value), f"{value:g}") for value in ticks(0, names - 1, 8) if float(value).is_integer()]
    step = max(1, math.ceil(_PITCH / size))
    return [(index, names[index]) for index in range(0, len(names), step)]


def _name_size(cell: float) -> float:
    return max(_SMALLEST_NAME, min(FONT_SIZE, 0.8 * cell))


def _turn_of(names: Sequence[str], size: float) -> int:
    """Return the angle in degrees of the names above columns of this size: flat, slanted or upright."""
    if widest(names, _name_size(size)) < size:
        return 0
    return -45 if size >= _SLANTED_CELL else -90


def _draw_column_names(
    canvas: Canvas, names: Sequence[str] | int, left: float, bottom: float, size: float, turn: int
) -> None:
    """Draw the names of the columns above them, at an angle, or the numbers of some."""
    font = _name_size(size)
    for index, name in _labels(names, size):
        x = left + (index + 0.5) * size
        if isinstance(names, int):
            canvas.text(x, bottom - 4, name, size=10, anchor="middle")
        elif turn:
            canvas.text(x + 0.36 * font * (turn == -90), bottom - 5, name, turn=turn, size=font)
        else:
            canvas.text(x, bottom - 5, name, anchor="middle", size=font)


def _draw_row_names(canvas: Canvas, names: Sequence[str] | int, left: float, top: float, size: float) -> None:
    font = 10 if isinstance(names, int) else _name_size(size)
    for index, name in _labels(names, size):
        canvas.text(left - 5, top + (index + 0.5) * size + 0.36 * font, name, anchor="end", size=font)


def _draw_numbered_cells(canvas: Canvas, chart: HeatMap, left: float, top: float, size: float) -> None:
    """Draw each cell with its number; 0 is left out."""
    font = min(10.0, 0.38 * size)
    for row, line in enumerate(chart.values.tolist()):
        for column, value in enumerate(line):
            x, y = left + column * size, top + row * size
            title = f"{chart.rows.names[row]} / {chart.columns.names[column]}: {value:.4f}"
            if chart.hidden is not None and chart.hidden[row, column]:
                _draw_hidden_cell(canvas, x, y, size - 1, f"{title} ({chart.hidden_title})")
                continue
            colour = shade(fraction(value, chart.low, chart.high), signed=chart.signed)
            canvas.box(x, y, size - 1, size - 1, hexadecimal(colour), title=title)
            if number := _short(value):
                middle = y + size / 2 + 0.36 * font
                canvas.text(x + size / 2 - 0.5, middle, number, size=font, anchor="middle", fill=ink_on(colour))


def _draw_hidden_cell(canvas: Canvas, x: float, y: float, size: float, title: str = "") -> None:
    canvas.box(x + 0.5, y + 0.5, size - 1, size - 1, "#ffffff", extra=f'stroke="{_HATCH}"', title=title)
    canvas.line(x + 3, y + size - 3, x + size - 3, y + 3, stroke=_HATCH)


def _short(value: float) -> str:
    """Format a number in few characters: .05, 1.0, −.30, 12; "" for 0."""
    if abs(value) >= 10:
        text = f"{value:.0f}"
    elif abs(value) >= 1:
        text = f"{value:.1f}"
    else:
        text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) >= 0.005 else ""
    return minus(text)


def _draw_shades(canvas: Canvas, chart: HeatMap, left: float, top: float, size: float) -> None:
    _draw_squares(canvas, chart.values, (chart.low, chart.high), left, top, size, signed=chart.signed)
    if chart.hidden is None:
        return
    cells, lines = "", ""
    for row, column in zip(*(axis.tolist() for axis in chart.hidden.nonzero()), strict=True):
        x, y = left + column * size, top + row * size
        cells += f"M{x:.5g} {y:.5g}h{size:.4g}v{size:.4g}h-{size:.4g}z"
        lines += f"M{x + 2:.5g} {y + size - 2:.5g}L{x + size - 2:.5g} {y + 2:.5g}"
    canvas.path(cells, fill="#ffffff", stroke=_HATCH, width=0.5)
    if size > _PITCH:
        canvas.path(lines, stroke=_HATCH)


def _draw_squares(
    canvas: Canvas,
    values: Array,
    value_range: tuple[float, float],
    left: float,
    top: float,
    size: float,
    *,
    signed: bool = False,
) -> None:
    """Draw values (R, C) as shades: all cells of a shade are one path, adjacent cells one line of it."""
    paths: dict[int, str] = {}
    for row, line in enumerate(values.tolist()):
        levels = [round(min(1.0, max(0.0, fraction(value, *value_range))) * _SHADES) for value in line]
        start = 0
        for level, cells in groupby(levels):
            count = len(list(cells))
            paths[level] = paths.get(level, "") + f"M{start} {row}h{count}"
            start += count
    squares = Canvas()
    for level, path in sorted(paths.items()):
        squares.path(path, stroke=hexadecimal(shade(level / _SHADES, signed=signed)))
    drawn = "".join(squares.parts)
    canvas.parts.append(
        f'<g transform="translate({left:.1f} {top + size / 2:.2f}) scale({size:.5g})" shape-rendering="crispEdges">'
        f"{drawn}</g>"
    )
    canvas.reach(left + values.shape[1] * size, top + values.shape[0] * size)


def _draw_scale(
    canvas: Canvas, chart: HeatMap | Thumbnails, left: float, top: float, hidden_title: str = ""
) -> None:
    """Draw the meaning of the shades, the values of the first and the last, and the sign of hidden cells."""
    low, high, signed = (0.0, 1.0, False)
    if isinstance(chart, HeatMap):
        low, high, signed = chart.low, chart.high, chart.signed
    canvas.text(left, top, chart.legend, size=SMALL)
    for step in range(_SCALE_STEPS):
        colour = hexadecimal(shade(step / (_SCALE_STEPS - 1), signed=signed))
        canvas.box(left + step * _SCALE_STEP, top + 6, _SCALE_STEP + 0.5, 10, colour)
    right = left + _SCALE_STEPS * _SCALE_STEP
    if signed:
        canvas.box(left, top + 6, right - left, 10, "none", extra=f'stroke="{_HATCH}" stroke-width="0.5"')
        canvas.text((left + right) / 2, top + 27, "0", size=10, anchor="middle")
    canvas.text(left, top + 27, minus(f"{low:.3g}"), size=10)
    canvas.text(right, top + 27, f"{high:.3g}", size=10, anchor="end")
    if hidden_title:
        _draw_hidden_cell(canvas, right + 16, top + 4, 14)
        canvas.text(right + 36, top + 15, hidden_title, size=SMALL)


def draw_thumbnails(chart: Thumbnails, room: float) -> Canvas:
    """Draw a small heat map for each head, the heads of a layer beside each other.

    The names of the rows are at the left of each layer, the names of the columns above the first layer.
    """
    canvas = Canvas()
    layers, heads, rows, columns = chart.weights.shape
    most = min(_MAX_NAME_WIDTH, room / 5)
    row_names, column_names = (
        [clip(name, most, 10) for name in names] for names in (chart.rows.names, chart.columns.names)
    )
    left = _TITLE + max(widest(row_names, 10), 48.0) + 6
    per_line = max(heads, 1)
    while per_line > 1 and _small_cell(room - left, per_line, columns) < _MIN_SMALL_CELL:
        per_line -= 1
    per_line = math.ceil(heads / math.ceil(heads / per_line)) if heads else 1
    size = max(1.0, min(_SMALL_CELL, _small_cell(room - left, per_line, columns)))
    wide, high = max(columns * size, 46.0) + _GAP, rows * size + 42
    turn = -90 if _turn_of(column_names, size) else 0
    first = _TITLE + 20 + max(12.0, widest(column_names, 10) * _TALL[turn]) + 6
    for layer in range(layers):
        for head in range(heads):
            line, column = divmod(head, per_line)
            x, top = left + column * wide, first + (layer * math.ceil(heads / per_line) + line) * high
            caption = top - 6 if layer or line else _TITLE + 14
            if layer == line == 0:
                _draw_column_names(canvas, column_names, x, top, size, turn)
            if column == 0:
                _draw_row_names(canvas, row_names, left, top, size)
                canvas.text(_TITLE + 6, caption, localize("layer {layer}", layer=layer), size=SMALL, bold=True)
            canvas.text(x, caption, localize("head {head}", head=head), size=SMALL)
            _draw_squares(canvas, chart.weights[layer, head], (0.0, 1.0), x, top, size)
            canvas.box(x, top, columns * size, rows * size, "none", extra=f'stroke="{INK}" stroke-width="0.5"')
            entropy = localize("{entropy:.2f} nats", entropy=chart.entropy[layer, head])
            canvas.text(x, top + rows * size + 13, entropy, size=10)
    _draw_axis_titles(
        canvas,
        [chart.rows.title],
        chart.columns.title,
        (left, first),
        (min(per_line, heads) * wide - _GAP, canvas.height - first),
    )
    _draw_scale(canvas, chart, left, canvas.height + 20)
    return canvas


def _small_cell(room: float, heads: int, columns: int) -> float:
    """Return the size of a cell if `heads` heads are beside each other."""
    return (room / heads - _GAP) / max(columns, 1)
