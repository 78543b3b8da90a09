"""Charts as lines of text, for a terminal: shade blocks with numbers, bars, trees, braille curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from manyheads.inspection.beam_tree import GONE, BeamNode, reason
from manyheads.inspection.charts import (
    Bars,
    Chart,
    HeatMap,
    Line,
    Lines,
    Links,
    Table,
    Thumbnails,
    Tree,
    shown,
    visible,
)
from manyheads.inspection.terminal import display_width, fit, padded, shade
from manyheads.inspection.ticks import tick_text

__all__ = ["chart_lines"]

WIDE_CELL, NARROW_CELL = 4, 2
LONGEST_LABEL = 16
SHORTEST_CUT = 24  # columns of text that are left of a cell that has to be cut
MOST_ROWS = 64  # of a heat map without names
HIDDEN = "·"
BAR = 24
PLOT_WIDTH, PLOT_HEIGHT = 60, 8
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille cell: row, column


def chart_lines(chart: Chart, width: int) -> list[str]:
    """A chart with its title, in lines of about so many columns."""
    body = {
        Table: table_lines,
        HeatMap: heat_map_lines,
        Bars: bar_lines,
        Lines: curve_lines,
        Links: link_lines,
        Thumbnails: thumbnail_lines,
        Tree: tree_lines,
    }[type(chart)]
    note = [visible(chart.note)] if chart.note else []
    return [visible(chart.title), *note, "", *body(chart, width)]  # type: ignore[operator]


def table_lines(table: Table, width: int) -> list[str]:
    """Columns side by side; numbers stand at the right."""
    cells = [list(map(visible, table.columns)), *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    while sum(widths) + 2 * len(widths) > width and max(widths) > SHORTEST_CUT:
        widths[widths.index(max(widths))] -= 1
    numeric = [
        all(isinstance(row[place], int | float | None) for row in table.rows) for place in range(len(table.columns))
    ]
    lines = [
        "  ".join(
            padded(fit(cell, min(size, display_width(cell))), size) if number else fit(cell, size)
            for cell, size, number in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    return [lines[0], "  ".join("─" * size for size in widths), *lines[1:]]


def heat_map_lines(chart: HeatMap, width: int) -> list[str]:
    """Shade blocks; the largest cell of a row shows its number, which stands at the end where cells are narrow."""
    told: list[str] = []
    if not chart.columns:
        chart, told = thinned(chart, width)
    rows = [fit(visible(row), min(LONGEST_LABEL, display_width(visible(row)))) for row in chart.rows]
    side = max(map(display_width, rows), default=0)
    columns = [visible(column)[:LONGEST_LABEL] for column in chart.columns]
    room = max(20, width - side - 3)
    cell = WIDE_CELL if len(columns) * WIDE_CELL <= room else NARROW_CELL
    most = max(1, (room - (cell == NARROW_CELL) * 8) // cell)
    lines = told
    for first in range(0, len(columns), most):
        part = slice(first, first + most)
        lines += [""] * bool(first)
        lines += [
            f"{padded(row, side)} │{cells}" for row, cells in zip(rows, block_lines(chart, part, cell), strict=True)
        ]
        lines.append(f"{' ' * side} └{'─' * (cell * len(columns[part]))}")
        lines += upright(columns[part], side + 2, cell)
    return lines


def block_lines(chart: HeatMap, part: slice, cell: int) -> Iterator[str]:
    """The cells of some of the columns, a line a row."""
    spread = (chart.high - chart.low) or 1.0
    for number, row in enumerate(chart.values.tolist()):
        top = max(range(len(row)), key=row.__getitem__)
        cells = []
        for place in range(*part.indices(len(row))):
            hidden = chart.hidden is not None and bool(chart.hidden[number, place])
            share = (row[place] - chart.low) / spread
            if hidden:
                cells.append(fit(HIDDEN, cell))
            elif place == top and cell == WIDE_CELL and chart.high <= 1:
                cells.append(f"{row[place]:.2f}"[-4:])
            else:
                cells.append(shade(min(1.0, max(0.0, share))) * cell)
        end = f" {row[top]:.2f}" if cell == NARROW_CELL or chart.high > 1 else ""
        yield "".join(cells) + end


def thinned(chart: HeatMap, width: int) -> tuple[HeatMap, list[str]]:
    """A large heat map with only some of its rows and columns, evenly spread, and a line that says so."""
    rows, columns = chart.values.shape
    row_step, column_step = -(-rows // MOST_ROWS), max(1, -(-columns // max(1, (width - 30) // NARROW_CELL)))
    fewer = replace(
        chart,
        rows=chart.rows[::row_step],
        columns=tuple(str(place) for place in range(0, columns, column_step)),
        values=chart.values[::row_step, ::column_step],
        hidden=None if chart.hidden is None else chart.hidden[::row_step, ::column_step],
    )
    if row_step == column_step == 1:
        return fewer, []
    return fewer, [f"Shown: one row in {row_step}, one column in {column_step}."]


def upright(columns: Sequence[str], indent: int, cell: int) -> list[str]:
    """Names below each other, a letter a line."""
    lines = []
    for depth in range(max(map(len, columns), default=0)):
        letters = [column[depth] if depth < len(column) else " " for column in columns]
        lines.append((" " * indent + "".join(fit(letter, cell) for letter in letters)).rstrip())
    return lines


def bar_lines(chart: Bars, width: int) -> list[str]:
    """A bar and its number for each label; what is doubtful has a "?"."""
    labels = [visible(label) for label in chart.labels]
    side = min(28, max(map(display_width, labels), default=0))
    reach = max(abs(chart.low), abs(chart.high)) or 1.0
    lines = []
    for label, value, detail, doubtful in zip(labels, chart.values, chart.details, chart.doubtful, strict=True):
        size = round(abs(value) / reach * BAR)
        bar = ("█" if value >= 0 else "▒") * size
        line = f"{fit(label, side)} {'?' if doubtful else ' '}{bar:<{BAR}} {chart.number(value):>9}  "
        lines.append((line + fit(visible(detail), max(20, width - display_width(line)))).rstrip())
    return lines


def link_lines(chart: Links, width: int) -> list[str]:
    """Each word below beside the words above that it comes from."""
    found: dict[int, list[tuple[int, float]]] = {}
    for above, below, weight in chart.links:
        found.setdefault(below, []).append((above, weight))
    side = max((display_width(visible(word)) for word in chart.below), default=0)
    return [
        f"{fit(visible(word), side)}  <- "
        + ", ".join(f"{visible(chart.above[above])} ({weight:.2f})" for above, weight in found.get(place, ()))
        for place, word in enumerate(chart.below)
    ]


def thumbnail_lines(chart: Thumbnails, width: int) -> list[str]:
    """Only the entropies: small pictures cannot be read as text."""
    return table_lines(chart.data, width)


def tree_lines(chart: Tree, width: int) -> list[str]:
    """The tree with the reasons why branches ended; the way to the best output is marked with ●."""
    tree = chart.tree
    children: dict[int | None, list[BeamNode]] = {}
    for node in tree.nodes:
        children.setdefault(node.parent, []).append(node)
    lines: list[str] = []
    stack = [(node, "", place == 0) for place, node in enumerate(reversed(children.get(None, [])))]
    while stack:
        node, indent, last = stack.pop()
        why = reason(node, tree)
        mark = "●" if node.best else "○" if node.state == "kept" else "×" if node.state in GONE else "■"
        text = f"{indent}{'└─' if last else '├─'}{mark} {visible(node.piece)} {node.total:.2f}"
        lines.append(f"{text}  {why}" if why else text)
        deeper = indent + (" " if last else "│")
        below = children.get(node.number, [])
        stack += [(one, deeper, place == 0) for place, one in enumerate(reversed(below))]
    return lines


def curve_lines(chart: Lines, width: int) -> list[str]:
    """Each curve in a plot of its own, all with the same axes."""
    every = [line for line in chart.lines if line.x]
    if not every:
        return ["(no points yet)"]
    x_low, x_high = min(min(line.x) for line in every), max(max(line.x) for line in every)
    y_low, y_high = min(min(line.y) for line in every), max(max(line.y) for line in every)
    lines: list[str] = []
    for line in every:
        lines.append(f"{visible(line.name)}, last {line.y[-1]:.4g}")
        lines += plot(line, (x_low, x_high), (y_low, y_high))
    return lines


def plot(line: Line, x_range: tuple[float, float], y_range: tuple[float, float]) -> list[str]:
    """One curve in braille dots between its axes."""
    (x_low, x_high), (y_low, y_high) = x_range, y_range
    cells = [[0] * PLOT_WIDTH for _ in range(PLOT_HEIGHT)]
    wide, high = PLOT_WIDTH * 2 - 1, PLOT_HEIGHT * 4 - 1
    before: tuple[int, int] | None = None
    for x, y in zip(line.x, line.y, strict=True):
        across = round((x - x_low) / ((x_high - x_low) or 1) * wide)
        down = round((y_high - y) / ((y_high - y_low) or 1) * high)
        for column, row in between(before, (across, down)):
            cells[row // 4][column // 2] |= DOTS[row % 4][column % 2]
        before = (across, down)
    names = [f"{y_high:.4g}", *[""] * (PLOT_HEIGHT - 2), f"{y_low:.4g}"]
    side = max(map(len, names))
    found = [
        f"{name:>{side}} │{''.join(chr(0x2800 + dots) for dots in row)}"
        for name, row in zip(names, cells, strict=True)
    ]
    left, right = tick_text(x_low), tick_text(x_high)
    return [*found, f"{'':>{side}} └{'─' * PLOT_WIDTH}", f"{'':>{side}}  {left}{right:>{PLOT_WIDTH - len(left)}}"]


def between(first: tuple[int, int] | None, last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The dots of a straight line."""
    if first is None:
        yield last
        return
    steps = max(abs(last[0] - first[0]), abs(last[1] - first[1]), 1)
    for step in range(steps + 1):
        yield (
            round(first[0] + (last[0] - first[0]) * step / steps),
            round(first[1] + (last[1] - first[1]) * step / steps),
        )
