"""Heat maps: with a number in each cell if they are few, else shades alone."""

from __future__ import annotations

from manyheads.inspection.charts import HeatMap, Thumbnails, fraction
from manyheads.inspection.codec import Array
from manyheads.inspection.colours import INK, hexadecimal, ink_on, shade
from manyheads.inspection.svg.canvas import FONT_SIZE, Canvas, clipped, text_width

__all__ = ["draw_heat_map", "draw_thumbnails"]

NUMBERED_CELL, NAMED_CELL, SHADE_CELL = 30, 16, 6  # pixels of a cell with a number, with names, and without either
MAX_NUMBERED_CELLS = 900
MAX_NAMES = 60  # of rows or columns; more are numbered
NAME_COLUMNS = 20  # longer names are cut
SHADES = 64
HATCH = "#d9d9d9"


def draw_heat_map(chart: HeatMap) -> Canvas:
    """Draw the cells, the names of rows at the left and of columns below, and a scale at the bottom."""
    canvas = Canvas()
    rows, columns = chart.values.shape
    named_rows = bool(chart.rows) and rows <= MAX_NAMES
    named_columns = bool(chart.columns) and columns <= MAX_NAMES
    numbered = rows * columns <= MAX_NUMBERED_CELLS and named_rows and named_columns
    size = NUMBERED_CELL if numbered else NAMED_CELL if named_rows and named_columns else SHADE_CELL
    names = [clipped(name, NAME_COLUMNS) for name in chart.rows] if named_rows else []
    left = 24 + max(map(text_width, names), default=4 * FONT_SIZE) + 8
    if numbered:
        draw_numbered_cells(canvas, chart, left, size)
    else:
        draw_shades(canvas, chart, left, size)
    for index, name in enumerate(names):
        canvas.text(left - 6, index * size + size / 2 + 4, name, anchor="end", size=min(FONT_SIZE, size))
    bottom = rows * size
    below = draw_column_names(canvas, chart, left, bottom, size)
    canvas.text(14, max(bottom / 2, 30), chart.row_title, turn=-90, anchor="middle", size=11)
    canvas.text(left, below + 16, chart.column_title, size=11)
    draw_scale(canvas, chart, left, below + 26)
    return canvas


def draw_column_names(canvas: Canvas, chart: HeatMap, left: float, bottom: float, size: float) -> float:
    """Draw the names of the columns, slanted, or the numbers of some; return the y of their lower end."""
    if 0 < len(chart.columns) <= MAX_NAMES:
        names = [clipped(name, NAME_COLUMNS) for name in chart.columns]
        for index, name in enumerate(names):
            x = left + index * size + size / 2 + 4
            canvas.text(x, bottom + 10, name, anchor="end", turn=-50, size=min(FONT_SIZE, size))
        return bottom + 14 + max(map(text_width, names), default=0) * 0.77
    columns = chart.values.shape[1]
    for index in range(0, columns, max(1, columns // 8)):
        canvas.text(left + index * size, bottom + 13, str(index), size=10)
    if not chart.rows or len(chart.rows) > MAX_NAMES:
        for index in range(0, len(chart.values), max(1, len(chart.values) // 8)):
            canvas.text(left - 4, index * size + size, str(index), size=10, anchor="end")
    return bottom + 16


def draw_numbered_cells(canvas: Canvas, chart: HeatMap, left: float, size: float) -> None:
    """Draw each cell with its number."""
    for row, line in enumerate(chart.values.tolist()):
        for column, value in enumerate(line):
            x, y = left + column * size, row * size
            title = f"{chart.rows[row]} / {chart.columns[column]}: {value:.4f}"
            if chart.hidden is not None and chart.hidden[row, column]:
                canvas.box(
                    x, y, size - 1, size - 1, "#ffffff", extra=f'stroke="{HATCH}"', title=title + " (hidden)"
                )
                canvas.line(x + 3, y + size - 4, x + size - 4, y + 3, stroke=HATCH)
                continue
            colour = shade(fraction(value, chart.low, chart.high))
            canvas.box(x, y, size - 1, size - 1, hexadecimal(colour), title=title)
            canvas.text(
                x + size / 2 - 0.5, y + size / 2 + 4, short(value), size=10, anchor="middle", fill=ink_on(colour)
            )


def short(value: float) -> str:
    """Format a number in few characters: .05, 1.0, -.30, 12."""
    if abs(value) >= 10:
        return f"{value:.0f}"
    if abs(value) >= 1:
        return f"{value:.1f}"
    text = f"{value:.2f}"
    return text.replace("0.", ".", 1) if float(text) else "0"


def draw_shades(canvas: Canvas, chart: HeatMap, left: float, size: float) -> None:
    """Draw shades without numbers."""
    draw_squares(canvas, chart.values, (chart.low, chart.high), left, 0, size)
    if chart.hidden is None:
        return
    cells = [
        square(left + column * size, row * size, size)
        for row, column in zip(*(axis.tolist() for axis in chart.hidden.nonzero()), strict=True)
    ]
    canvas.path("".join(cells), fill="#ffffff", stroke=HATCH, width=0.5)


def square(x: float, y: float, size: float) -> str:
    """Return the path of a square."""
    return f"M{x:g} {y:g}h{size:g}v{size:g}h-{size:g}z"


def draw_squares(
    canvas: Canvas, values: Array, value_range: tuple[float, float], left: float, top: float, size: float
) -> None:
    """Draw values (R, C) as shades, all cells of a shade as one path, so that a large map is a small file."""
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(values.tolist()):
        for column, value in enumerate(line):
            level = round(min(1.0, max(0.0, fraction(value, *value_range))) * (SHADES - 1))
            paths.setdefault(level, []).append(square(left + column * size, top + row * size, size))
    for level, cells in sorted(paths.items()):
        canvas.path("".join(cells), fill=hexadecimal(shade(level / (SHADES - 1))))
    canvas.reach(left + values.shape[1] * size, top + values.shape[0] * size)


def draw_scale(canvas: Canvas, chart: HeatMap, left: float, top: float) -> None:
    """Draw the shades with the values of the first and the last."""
    steps = 24
    for step in range(steps):
        canvas.box(left + step * 6, top, 6.5, 10, hexadecimal(shade(step / (steps - 1))))
    canvas.text(left, top + 22, f"{chart.low:.3g}", size=10)
    canvas.text(left + steps * 6, top + 22, f"{chart.high:.3g}", size=10, anchor="end")


def draw_thumbnails(chart: Thumbnails) -> Canvas:
    """Draw a row of small heat maps for each layer, a column for each head."""
    canvas = Canvas()
    layers, heads, rows, columns = chart.weights.shape
    size = max(1.0, min(6.0, 140 / max(rows, columns)))
    wide, high = columns * size + 18, rows * size + 34
    for head in range(heads):
        canvas.text(70 + head * wide, 12, f"head {head}", size=11)
    for layer in range(layers):
        top = 20 + layer * high
        canvas.text(0, top + 14, f"layer {layer}", size=11)
        for head in range(heads):
            left = 70 + head * wide
            draw_squares(canvas, chart.weights[layer, head], (0.0, 1.0), left, top, size)
            canvas.box(left, top, columns * size, rows * size, "none", extra=f'stroke="{INK}" stroke-width="0.5"')
            canvas.text(left, top + rows * size + 12, f"{chart.entropy[layer, head]:.2f} nats", size=10)
    return canvas
