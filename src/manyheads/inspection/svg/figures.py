"""Bars, curves, alignments, tables."""

from __future__ import annotations

from html import escape

from manyheads.inspection.charts import Bars, Line, Lines, Links, Table, shown, visible
from manyheads.inspection.colours import DASHES, INK, LINES, MARKERS
from manyheads.inspection.svg.canvas import SIZE, Canvas, clipped, text_width
from manyheads.inspection.terminal import display_width
from manyheads.inspection.ticks import tick_text, ticks

__all__ = ["draw_bars", "draw_lines", "draw_links", "draw_table"]

ROW = 20
BAR = 220
LONGEST = 30  # columns of text of a label
DETAIL = 90  # of what stands beside a bar
BLUE, PALE, GRID = "#0072B2", "#56B4E9", "#d0d0d0"
PLOT_WIDTH, PLOT_HEIGHT = 560, 260
MOST_MARKERS = 12
CELL_COLUMNS = 48
MOST_ROWS = 400


def draw_bars(chart: Bars) -> Canvas:
    """A bar for each label with its number; what is doubtful has a dashed outline, a dotted line and a "?"."""
    canvas = Canvas()
    labels = [clipped(label, LONGEST) for label in chart.labels]
    left = max(map(text_width, labels), default=0) + 10
    low, high = min(0.0, chart.low), max(0.0, chart.high)
    spread = (high - low) or 1.0
    zero = left + -low / spread * BAR
    for place, (label, value) in enumerate(zip(labels, chart.values, strict=True)):
        top = place * ROW
        doubtful = chart.doubtful[place]
        canvas.text(left - 6, top + 14, label, anchor="end")
        if doubtful:
            wide = text_width(label)
            canvas.line(left - 6 - wide, top + 17, left - 6, top + 17, dash="1 3", width=1.5)
        end = zero + value / spread * BAR
        extra = f'stroke="{BLUE}" stroke-dasharray="3 2"' if doubtful or value < 0 else ""
        fill = "#ffffff" if doubtful or value < 0 else BLUE
        canvas.box(min(zero, end), top + 3, abs(end - zero), ROW - 7, fill, extra=extra)
        number = chart.number(value) + (" ?" if doubtful else "")
        canvas.text(left + BAR + 62, top + 14, number, anchor="end", size=11)
        if chart.details[place]:
            canvas.text(left + BAR + 76, top + 14, clipped(chart.details[place], DETAIL), size=11)
    bottom = len(labels) * ROW
    canvas.line(zero, 0, zero, bottom, width=1)
    for value in ticks(low, high):
        x = zero + value / spread * BAR
        canvas.line(x, bottom, x, bottom + 4)
        canvas.text(x, bottom + 15, tick_text(value), anchor="middle", size=10)
    canvas.text(left, bottom + 30, chart.value_title, size=11)
    return canvas


def draw_lines(chart: Lines) -> Canvas:
    """Curves that differ in colour, dash and marker; the legend shows all three."""
    canvas = Canvas()
    every = [line for line in chart.lines if line.x]
    if not every:
        canvas.text(0, 14, "(no points yet)")
        return canvas
    x_low, x_high = min(min(line.x) for line in every), max(max(line.x) for line in every)
    y_low, y_high = min(min(line.y) for line in every), max(max(line.y) for line in every)
    y_ticks = ticks(y_low, y_high)
    left = max(text_width(tick_text(value), 10) for value in y_ticks) + 28
    frame = (left, 8.0, PLOT_WIDTH, PLOT_HEIGHT)
    axes(canvas, chart, (x_low, x_high), (y_low, y_high), frame)
    for number, line in enumerate(every):
        places = [
            (left + (x - x_low) / ((x_high - x_low) or 1) * PLOT_WIDTH,
             8.0 + (y_high - y) / ((y_high - y_low) or 1) * PLOT_HEIGHT)
            for x, y in zip(line.x, line.y, strict=True)
        ]  # fmt: skip
        curve(canvas, places, number)
    legend(canvas, every, left, PLOT_HEIGHT + 64)
    return canvas


def axes(
    canvas: Canvas,
    chart: Lines,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    frame: tuple[float, float, float, float],
) -> None:
    """Frame, grid and numbers; frame: left, top, width, height."""
    left, top, width, height = frame
    canvas.box(left, top, width, height, "none", extra=f'stroke="{INK}"')
    for value in ticks(*x_range):
        x = left + (value - x_range[0]) / ((x_range[1] - x_range[0]) or 1) * width
        canvas.line(x, top, x, top + height, stroke=GRID, width=0.5)
        canvas.text(x, top + height + 14, tick_text(value), anchor="middle", size=10)
    for value in ticks(*y_range):
        y = top + (y_range[1] - value) / ((y_range[1] - y_range[0]) or 1) * height
        canvas.line(left, y, left + width, y, stroke=GRID, width=0.5)
        canvas.text(left - 5, y + 3.5, tick_text(value), anchor="end", size=10)
    canvas.text(left + width / 2, top + height + 32, chart.x_title, anchor="middle", size=11)
    canvas.text(12, top + height / 2, chart.y_title, anchor="middle", size=11, turn=-90)


def curve(canvas: Canvas, places: list[tuple[float, float]], number: int) -> None:
    """One curve with some markers."""
    colour = LINES[number % len(LINES)]
    data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    canvas.path(data, stroke=colour, width=1.8, dash=DASHES[number % len(DASHES)])
    step = max(1, len(places) // MOST_MARKERS)
    for x, y in places[::step]:
        marker(canvas, x, y, number)


def marker(canvas: Canvas, x: float, y: float, number: int) -> None:
    """The mark of a curve at a point."""
    colour, kind = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
    outlines = {
        "circle": f"M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
        "ring": f"M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
        "square": f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z",
        "triangle": f"M{x:.1f} {y - 4:.1f}l4 7h-8z",
        "diamond": f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z",
        "cross": f"M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6",
        "plus": f"M{x - 4:.1f} {y:.1f}h8m-4 -4v8",
    }
    solid = kind not in ("ring", "cross", "plus")
    canvas.path(outlines[kind], fill=colour if solid else "none", stroke=colour, width=1.5)


def legend(canvas: Canvas, lines: list[Line], left: float, top: float) -> None:
    """Name of each curve beside a piece of it."""
    for number, line in enumerate(lines):
        y = top + number * 18
        curve(canvas, [(left, y), (left + 36, y)], number)
        canvas.text(left + 46, y + 4, f"{line.name} (last {line.y[-1]:.4g})", size=11)


def draw_links(chart: Links) -> Canvas:
    """Two rows of words, a line for each link, the thicker the heavier."""
    canvas = Canvas()
    above, below = ([clipped(word, LONGEST) for word in words] for words in (chart.above, chart.below))
    tops = centres(above, 60)
    bottoms = centres(below, 60)
    canvas.text(0, 16, chart.above_title, size=11)
    canvas.text(0, 136, chart.below_title, size=11)
    for upper, lower, weight in chart.links:
        start, end = f"{tops[upper]:.1f}", f"{bottoms[lower]:.1f}"
        canvas.parts.append(
            f'<path d="M{start} 24C{start} 70 {end} 70 {end} 120" '
            f'fill="none" stroke="{BLUE}" stroke-width="{0.8 + 3.2 * weight:.2f}">'
            f"<title>{escape(visible(above[upper] + ' - ' + below[lower]))}: {weight:.3f}</title></path>"
        )
    for x, word in zip(tops, above, strict=True):
        canvas.text(x, 17, word, anchor="middle")
    for x, word in zip(bottoms, below, strict=True):
        canvas.text(x, 136, word, anchor="middle")
    return canvas


def centres(words: list[str], left: float) -> list[float]:
    """Where the middle of each of some words in a row is."""
    found = []
    for word in words:
        wide = text_width(word) + 14
        found.append(left + wide / 2)
        left += wide
    return found


def draw_table(table: Table) -> Canvas:
    """Columns side by side; of a very long table the beginning."""
    canvas = Canvas()
    rows = [[clipped(shown(cell), CELL_COLUMNS) for cell in row] for row in table.rows[:MOST_ROWS]]
    heads = [clipped(name, CELL_COLUMNS) for name in table.columns]
    widths = [
        max(display_width(row[place]) for row in [heads, *rows]) * SIZE * 0.62 + 16 for place in range(len(heads))
    ]
    x = 0.0
    for place, (name, wide) in enumerate(zip(heads, widths, strict=True)):
        numeric = all(isinstance(row[place], int | float | None) for row in table.rows) and bool(table.rows)
        anchor, at = ("end", x + wide - 12) if numeric else ("start", x)
        canvas.text(at, 13, name, bold=True, anchor=anchor)
        for number, row in enumerate(rows):
            canvas.text(at, 33 + number * 18, row[place], anchor=anchor, size=11)
        x += wide
    canvas.line(0, 18, x, 18)
    if len(table.rows) > MOST_ROWS:
        canvas.text(0, 33 + MOST_ROWS * 18, f"... {len(table.rows) - MOST_ROWS:,} more rows", size=11)
    return canvas
