"""Bars, curves, alignments, tables."""

from __future__ import annotations

from html import escape

from manyheads.inspection.charts import Bars, Lines, Links, Table, fraction, shown, tick_text, ticks, visible
from manyheads.inspection.colours import DASHES, INK, LINES, MARKERS
from manyheads.inspection.svg.canvas import Canvas, clipped, text_width

__all__ = ["draw_bars", "draw_lines", "draw_links", "draw_table"]

ROW = 20
BAR = 220
LABEL_COLUMNS, DETAIL_COLUMNS = 30, 90  # longer texts beside a bar are cut
BLUE, GRID = "#0072B2", "#d0d0d0"
PLOT_WIDTH, PLOT_HEIGHT, PLOT_TOP = 560, 260, 8.0
MAX_MARKERS = 12
# Marker: where its path begins beside the point, and the rest of the path.
OUTLINES = {
    "circle": (-3, 0, "a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"),
    "ring": (-3, 0, "a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"),
    "square": (-3, -3, "h6v6h-6z"),
    "triangle": (0, -4, "l4 7h-8z"),
    "diamond": (0, -4, "l4 4l-4 4l-4 -4z"),
    "cross": (-3, -3, "l6 6m0 -6l-6 6"),
    "plus": (-4, 0, "h8m-4 -4v8"),
}
HOLLOW = ("ring", "cross", "plus")
CELL_COLUMNS = 48
MAX_ROWS = 400


def draw_bars(chart: Bars) -> Canvas:
    """Draw a bar for each label with its number; a doubtful one has a dashed outline, a dotted line and a "?"."""
    canvas = Canvas()
    labels = [clipped(bar.label, LABEL_COLUMNS) for bar in chart.bars]
    left = max(map(text_width, labels), default=0) + 10
    low, high = min(0.0, chart.low), max(0.0, chart.high)
    spread = (high - low) or 1.0
    zero = left + -low / spread * BAR
    for row, (label, bar) in enumerate(zip(labels, chart.bars, strict=True)):
        top = row * ROW
        canvas.text(left - 6, top + 14, label, anchor="end")
        if bar.doubtful:
            canvas.line(left - 6 - text_width(label), top + 17, left - 6, top + 17, dash="1 3", width=1.5)
        end = zero + bar.value / spread * BAR
        outlined = bar.doubtful or bar.value < 0
        extra = f'stroke="{BLUE}" stroke-dasharray="3 2"' if outlined else ""
        fill = "#ffffff" if outlined else BLUE
        canvas.box(min(zero, end), top + 3, abs(end - zero), ROW - 7, fill, extra=extra)
        number = chart.number(bar.value) + (" ?" if bar.doubtful else "")
        canvas.text(left + BAR + 62, top + 14, number, anchor="end", size=11)
        if bar.detail:
            canvas.text(left + BAR + 76, top + 14, clipped(bar.detail, DETAIL_COLUMNS), size=11)
    bottom = len(labels) * ROW
    canvas.line(zero, 0, zero, bottom, width=1)
    for value in ticks(low, high):
        x = zero + value / spread * BAR
        canvas.line(x, bottom, x, bottom + 4)
        canvas.text(x, bottom + 15, tick_text(value), anchor="middle", size=10)
    canvas.text(left, bottom + 30, chart.value_title, size=11)
    return canvas


def draw_lines(chart: Lines) -> Canvas:
    """Draw curves that differ in colour, dash and marker; the legend shows all three."""
    canvas = Canvas()
    lines = [line for line in chart.lines if line.x]
    if not lines:
        canvas.text(0, 14, "(no points yet)")
        return canvas
    x_range, (y_low, y_high) = chart.extent()
    left = max(text_width(tick_text(value), 10) for value in ticks(y_low, y_high)) + 28
    draw_axes(canvas, chart, left)
    for number, line in enumerate(lines):
        points = [
            (left + fraction(x, *x_range) * PLOT_WIDTH, PLOT_TOP + fraction(y, y_high, y_low) * PLOT_HEIGHT)
            for x, y in zip(line.x, line.y, strict=True)
        ]
        draw_curve(canvas, points, number)
    for number, line in enumerate(lines):
        y = PLOT_HEIGHT + 64 + number * 18
        draw_curve(canvas, [(left, y), (left + 36, y)], number)
        canvas.text(left + 46, y + 4, f"{line.name} (last {line.y[-1]:.4g})", size=11)
    return canvas


def draw_axes(canvas: Canvas, chart: Lines, left: float) -> None:
    """Draw the frame, the grid, its numbers and the titles of the axes."""
    x_range, (y_low, y_high) = chart.extent()
    bottom = PLOT_TOP + PLOT_HEIGHT
    canvas.box(left, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT, "none", extra=f'stroke="{INK}"')
    for value in ticks(*x_range):
        x = left + fraction(value, *x_range) * PLOT_WIDTH
        canvas.line(x, PLOT_TOP, x, bottom, stroke=GRID, width=0.5)
        canvas.text(x, bottom + 14, tick_text(value), anchor="middle", size=10)
    for value in ticks(y_low, y_high):
        y = PLOT_TOP + fraction(value, y_high, y_low) * PLOT_HEIGHT
        canvas.line(left, y, left + PLOT_WIDTH, y, stroke=GRID, width=0.5)
        canvas.text(left - 5, y + 3.5, tick_text(value), anchor="end", size=10)
    canvas.text(left + PLOT_WIDTH / 2, bottom + 32, chart.x_title, anchor="middle", size=11)
    canvas.text(12, PLOT_TOP + PLOT_HEIGHT / 2, chart.y_title, anchor="middle", size=11, turn=-90)


def draw_curve(canvas: Canvas, points: list[tuple[float, float]], number: int) -> None:
    """Draw one curve with some markers; its number decides how it looks."""
    colour, kind = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
    data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    canvas.path(data, stroke=colour, width=1.8, dash=DASHES[number % len(DASHES)])
    for x, y in points[:: max(1, len(points) // MAX_MARKERS)]:
        dx, dy, outline = OUTLINES[kind]
        fill = "none" if kind in HOLLOW else colour
        canvas.path(f"M{x + dx:.1f} {y + dy:.1f}{outline}", fill=fill, stroke=colour, width=1.5)


def draw_links(chart: Links) -> Canvas:
    """Draw two rows of words and a line for each link, the thicker the heavier."""
    canvas = Canvas()
    above, below = ([clipped(word, LABEL_COLUMNS) for word in words] for words in (chart.above, chart.below))
    above_x, below_x = word_centres(above, 60), word_centres(below, 60)
    canvas.text(0, 16, chart.above_title, size=11)
    canvas.text(0, 136, chart.below_title, size=11)
    for upper, lower, weight in chart.links:
        start, end = f"{above_x[upper]:.1f}", f"{below_x[lower]:.1f}"
        canvas.parts.append(
            f'<path d="M{start} 24C{start} 70 {end} 70 {end} 120" '
            f'fill="none" stroke="{BLUE}" stroke-width="{0.8 + 3.2 * weight:.2f}">'
            f"<title>{escape(visible(above[upper] + ' - ' + below[lower]))}: {weight:.3f}</title></path>"
        )
    for words, centres, y in ((above, above_x, 17), (below, below_x, 136)):
        for x, word in zip(centres, words, strict=True):
            canvas.text(x, y, word, anchor="middle")
    return canvas


def word_centres(words: list[str], left: float) -> list[float]:
    """Return the x of the middle of each word of a row."""
    centres = []
    for word in words:
        width = text_width(word) + 14
        centres.append(left + width / 2)
        left += width
    return centres


def draw_table(table: Table) -> Canvas:
    """Draw the columns side by side; a very long table is cut."""
    canvas = Canvas()
    rows = [[clipped(shown(cell), CELL_COLUMNS) for cell in row] for row in table.rows[:MAX_ROWS]]
    x = 0.0
    for column, title in enumerate(table.columns):
        name = clipped(title, CELL_COLUMNS)
        cells = [row[column] for row in rows]
        width = max(map(text_width, [name, *cells])) + 16
        numeric = all(isinstance(row[column], int | float | None) for row in table.rows) and bool(table.rows)
        anchor, text_x = ("end", x + width - 12) if numeric else ("start", x)
        canvas.text(text_x, 13, name, bold=True, anchor=anchor)
        for number, cell in enumerate(cells):
            canvas.text(text_x, 33 + number * 18, cell, anchor=anchor, size=11)
        x += width
    canvas.line(0, 18, x, 18)
    if len(table.rows) > MAX_ROWS:
        canvas.text(0, 33 + MAX_ROWS * 18, f"... {len(table.rows) - MAX_ROWS:,} more rows", size=11)
    return canvas
