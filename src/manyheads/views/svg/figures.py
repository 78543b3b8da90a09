"""Bars, curves, alignments, tables."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from manyheads.views.charts import Bars, Lines, Links, Table, fraction, minus, shown, tick_text, ticks
from manyheads.views.colours import DASHES, INK, LINES, MARKERS, NEGATIVE, POSITIVE
from manyheads.views.svg.canvas import SMALL, Canvas, clip, text_width, widest
from manyheads.views.words import localize

_ROW = 20
_BAR, _NUMBER = 180, 62  # width of the longest bar, and of the numbers
_LABEL = 200  # longer labels of bars are cut; in narrow pictures a third of the width
_DETAIL = 100  # least width for the text beside a bar
_GRID = "#d0d0d0"
_PLOT_HEIGHT, _PLOT_TOP = 260, 8.0
_LEGEND_LINE_WIDTH = 30  # width of a piece of line in a legend
_LINE = 15  # height of a line of a legend
_CLEAR = 12  # least distance from the middle of a name to a curve
_MAX_MARKERS = 12
# Marker: where its path begins beside the point, and the rest of the path.
_OUTLINES = {
    "circle": (-3, 0, "a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"),
    "ring": (-3, 0, "a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"),
    "square": (-3, -3, "h6v6h-6z"),
    "triangle": (0, -4, "l4 7h-8z"),
    "diamond": (0, -4, "l4 4l-4 4l-4 -4z"),
    "cross": (-3, -3, "l6 6m0 -6l-6 6"),
    "plus": (-4, 0, "h8m-4 -4v8"),
}
_HOLLOW = ("ring", "cross", "plus")
_WORD_ROW, _LINK = 26, 150  # height of a word, and width of the space for the lines between two words
_MAX_LINK = 4.0  # width of the line of weight 1
_CELL, _MIN_CELL = 330, 60  # widths of a column of a table; longer texts are cut
_MAX_ROWS = 400


def draw_bars(chart: Bars, room: float) -> Canvas:
    """Draw a bar for each label with its number; a doubtful bar has a dashed outline, a dotted line and a "?"."""
    canvas = Canvas()
    labels = [clip(bar.label, min(_LABEL, room / 3)) for bar in chart.bars]
    left = widest(labels) + 10
    reach = min(_BAR, max(40.0, room - left - _NUMBER))
    low, high = min(0.0, chart.low), max(0.0, chart.high)
    zero = left + fraction(0.0, low, high) * reach
    for row, (label, bar) in enumerate(zip(labels, chart.bars, strict=True)):
        top = row * _ROW
        canvas.text(left - 6, top + 14, label, anchor="end")
        if bar.doubtful:
            canvas.line(left - 6 - text_width(label), top + 17, left - 6, top + 17, dash="1 3", width=1.5)
        end = left + fraction(bar.value, low, high) * reach
        colour = POSITIVE if bar.value >= 0 else NEGATIVE
        extra = f'stroke="{colour}" stroke-dasharray="3 2"' if bar.doubtful else ""
        canvas.box(
            min(zero, end), top + 3, abs(end - zero), _ROW - 7, "#ffffff" if bar.doubtful else colour, extra=extra
        )
        number = minus(chart.number(bar.value)) + (" ?" if bar.doubtful else "")
        canvas.text(left + reach + _NUMBER - 4, top + 14, number, anchor="end", size=SMALL)
        beside = left + reach + _NUMBER + 10
        if bar.detail and room - beside >= _DETAIL:
            canvas.text(beside, top + 14, clip(bar.detail, room - beside, SMALL), size=SMALL)
    bottom = len(labels) * _ROW
    canvas.line(zero, 0, zero, bottom, width=1)
    for value in ticks(low, high, 4):
        x = left + fraction(value, low, high) * reach
        canvas.line(x, bottom, x, bottom + 4)
        canvas.text(x, bottom + 15, minus(tick_text(value)), anchor="middle", size=10)
    title_left = left if text_width(chart.value_title, SMALL) <= room - left else 0.0
    below = canvas.paragraph(title_left, bottom + 31, chart.value_title, room - title_left) + 9
    if chart.doubt and any(bar.doubtful for bar in chart.bars):
        canvas.box(left, below, 22, _ROW - 7, "#ffffff", extra=f'stroke="{POSITIVE}" stroke-dasharray="3 2"')
        canvas.text(left + 28, below + 11, f"? {chart.doubt}", size=SMALL)
    return canvas


def draw_lines(chart: Lines, room: float) -> Canvas:
    """Draw curves that differ in colour, dash and marker, each with its name and last value near its end.

    Where the names would cover a curve, they are below the plot.
    """
    canvas = Canvas()
    lines = [line for line in chart.lines if line.x]
    if not lines:
        canvas.text(0, 14, localize("(no points yet)"))
        return canvas
    x_range, (y_low, y_high) = chart.extent()
    names = [f"{line.name}: {shown(line.y[-1])}" for line in lines]
    left = widest(map(tick_text, chart.y_ticks(y_low, y_high)), 10) + 28
    plot_width = min(560.0, room - left - 8)
    _draw_axes(canvas, chart, left, plot_width)
    curves = [
        [
            (
                left + fraction(x, *x_range) * plot_width,
                _PLOT_TOP + (1 - chart.height(y, y_low, y_high)) * _PLOT_HEIGHT,
            )
            for x, y in zip(line.x, line.y, strict=True)
        ]
        for line in lines
    ]
    for number, points in enumerate(curves):
        _draw_curve(canvas, points, number)
        x, y = points[-1]
        canvas.path(f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", fill="#ffffff", stroke=INK, width=1.5)
    x = left + plot_width - _LEGEND_LINE_WIDTH - widest(names, SMALL) - 14
    rows = _free_rows(curves, x, left + plot_width) if x > left else None
    if rows is None:
        x, below = 8.0, canvas.height + 16
        rows = [below + _LINE * row for row in range(len(names))]
    for number, (name, y) in enumerate(zip(names, rows, strict=True)):
        _draw_curve(
            canvas, [(x, y), (x + _LEGEND_LINE_WIDTH / 2, y), (x + _LEGEND_LINE_WIDTH, y)], number, markers=1
        )
        canvas.text(x + _LEGEND_LINE_WIDTH + 6, y + 4, name, size=SMALL)
    return canvas


def _free_rows(curves: list[list[tuple[float, float]]], left: float, right: float) -> list[float] | None:
    """Return the heights of the names of curves, as near as possible to the ends of the curves and in their order.

    A name reaches from `left` to `right` and covers no curve and no other name; None if there is no room.
    """
    low, high = np.concatenate([_spans(points, left - _CLEAR, right) for points in curves], axis=1)
    heights = np.arange(_PLOT_TOP + _LINE / 2, _PLOT_TOP + _PLOT_HEIGHT - _LINE / 2)
    free = [float(row) for row in heights if not ((low - _CLEAR < row) & (row < high + _CLEAR)).any()]
    rows: list[float] = []
    ends = [points[-1][1] for points in curves]
    for end in ends:
        if not free:
            return None
        rows.append(min(free, key=lambda row: abs(row - end)))
        free = [row for row in free if abs(row - rows[-1]) >= _LINE]
    ranks = sorted(range(len(ends)), key=ends.__getitem__)
    return [row for _, row in sorted(zip(ranks, sorted(rows), strict=True))]


def _spans(points: list[tuple[float, float]], left: float, right: float) -> NDArray[np.float64]:
    """Return the lowest and the highest y of each piece of a curve from `left` to `right`: (2, pieces)."""
    x, y = np.array(points).T
    ends = np.clip([left, right], x[0], x[-1])
    heights = np.interp([ends[0], *x[(x > left) & (x < right)], ends[1]], x, y)
    return np.stack([np.minimum(heights[:-1], heights[1:]), np.maximum(heights[:-1], heights[1:])])


def _draw_axes(canvas: Canvas, chart: Lines, left: float, plot_width: float) -> None:
    """Draw the frame, the grid, its numbers and the titles of the axes."""
    x_range, (y_low, y_high) = chart.extent()
    bottom = _PLOT_TOP + _PLOT_HEIGHT
    canvas.box(left, _PLOT_TOP, plot_width, _PLOT_HEIGHT, "none", extra=f'stroke="{INK}"')
    for value in ticks(*x_range, max(2, int(plot_width / 60))):
        x = left + fraction(value, *x_range) * plot_width
        canvas.line(x, _PLOT_TOP, x, bottom, stroke=_GRID, width=0.5)
        canvas.text(x, bottom + 14, tick_text(value), anchor="middle", size=10)
    for value in chart.y_ticks(y_low, y_high):
        y = _PLOT_TOP + (1 - chart.height(value, y_low, y_high)) * _PLOT_HEIGHT
        canvas.line(left, y, left + plot_width, y, stroke=_GRID, width=0.5)
        canvas.text(left - 5, y + 3.5, minus(tick_text(value)), anchor="end", size=10)
    canvas.text(left + plot_width / 2, bottom + 32, chart.x_title, anchor="middle", size=SMALL)
    canvas.text(12, _PLOT_TOP + _PLOT_HEIGHT / 2, chart.y_title, anchor="middle", size=SMALL, turn=-90)


def _draw_curve(
    canvas: Canvas, points: list[tuple[float, float]], number: int, markers: int = _MAX_MARKERS
) -> None:
    """Draw one curve with some markers; its number selects colour, dash and marker."""
    colour, kind = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
    data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    canvas.path(data, stroke=colour, width=1.8, dash=DASHES[number % len(DASHES)])
    every = max(1, len(points) // markers)
    for x, y in points[every // 2 :: every][:markers]:
        dx, dy, outline = _OUTLINES[kind]
        fill = "none" if kind in _HOLLOW else colour
        canvas.path(f"M{x + dx:.1f} {y + dy:.1f}{outline}", fill=fill, stroke=colour, width=1.5)


def draw_links(chart: Links, room: float) -> Canvas:
    """Draw the source words at the left, the target words at the right, and a line for each link."""
    canvas = Canvas()
    most = (room - _LINK / 2) / 2
    source, target = ([clip(word, most) for word in words] for words in (chart.source, chart.target))
    left = max(widest(source), text_width(chart.source_title, SMALL) * 1.1) + 8
    right = left + min(_LINK, room - 2 * most)
    canvas.text(left - 8, 12, chart.source_title, size=SMALL, bold=True, anchor="end")
    canvas.text(right + 8, 12, chart.target_title, size=SMALL, bold=True)
    middle = (left + right) / 2
    for upper, lower, weight in chart.links:
        start, end = (24 + _WORD_ROW * (index + 0.5) for index in (upper, lower))
        canvas.parts.append(
            f'<path d="M{left:.1f} {start:.1f}C{middle:.1f} {start:.1f} {middle:.1f} {end:.1f} {right:.1f} '
            f'{end:.1f}" fill="none" stroke="{POSITIVE}" stroke-width="{_link_width(weight):.2f}">'
            f"<title>{escape(source[upper] + ' - ' + target[lower])}: {weight:.3f}</title></path>"
        )
    for words, x, anchor in ((source, left - 8, "end"), (target, right + 8, "start")):
        for index, word in enumerate(words):
            canvas.text(x, 24 + _WORD_ROW * (index + 0.5) + 4, word, anchor=anchor)
    bottom, x = canvas.height + 22, 0.0
    canvas.text(x, bottom, f"{chart.legend}:", size=SMALL)
    x += text_width(f"{chart.legend}:", SMALL) + 12
    for weight in (0.25, 0.5, 1.0):
        canvas.line(x, bottom - 4, x + 24, bottom - 4, stroke=POSITIVE, width=_link_width(weight))
        canvas.text(x + 30, bottom, f"{weight:g}", size=SMALL)
        x += 62
    return canvas


def _link_width(weight: float) -> float:
    return 0.8 + (_MAX_LINK - 0.8) * weight


def draw_table(table: Table, room: float) -> Canvas:
    """Draw the columns side by side, the widest ones cut to fit; a very long table is cut."""
    canvas = Canvas()
    rows = [[shown(cell) for cell in row] for row in table.rows[:_MAX_ROWS]]
    widths = [min(_CELL, widest([name, *(row[column] for row in rows)]) * 1.02) + 16
              for column, name in enumerate(table.columns)]  # fmt: skip
    while sum(widths) > room and max(widths) > _MIN_CELL:
        widths[widths.index(max(widths))] *= 0.95
    x = 0.0
    for column, (title, width) in enumerate(zip(table.columns, widths, strict=True)):
        numeric = all(isinstance(row[column], int | float | None) for row in table.rows) and bool(table.rows)
        anchor, text_x = ("end", x + width - 12) if numeric else ("start", x)
        canvas.text(text_x, 13, clip(title, width - 14), bold=True, anchor=anchor)
        for number, row in enumerate(rows):
            canvas.text(text_x, 33 + number * 18, clip(row[column], width - 12, SMALL), anchor=anchor, size=SMALL)
        x += width
    canvas.line(0, 18, x, 18)
    if len(table.rows) > _MAX_ROWS:
        more = localize("... {count:,} more rows", count=len(table.rows) - _MAX_ROWS)
        canvas.text(0, 33 + _MAX_ROWS * 18, more, size=SMALL)
    return canvas
