"""Charts as text: as lines for a terminal (shade blocks, bars, trees, braille curves), and as CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len

from manyheads.views.beam_tree import DROPPED, BeamNode, reason
from manyheads.views.charts import (
    Bars,
    Cell,
    Chart,
    HeatMap,
    Line,
    Lines,
    Links,
    Table,
    Thumbnails,
    Tree,
    fraction,
    shown,
    tick_text,
    visible,
)
from manyheads.views.terminal import fit, heat_map, pad_to_width
from manyheads.views.words import localize

_LABEL_COLUMNS = 16
_MIN_COLUMN = 24  # narrowest column of a table whose cells are cut
_MAX_ROWS = 64  # rows of a heat map without names; of more rows, some are shown
_BAR = 24  # columns of the longest bar
_PLOT_WIDTH, _PLOT_HEIGHT = 60, 8
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a braille cell by row and column
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a text that a spreadsheet computes


def chart_lines(chart: Chart, width: int) -> list[str]:
    """Return a chart with its title, in lines of about `width` columns."""
    body = {
        Table: _table_lines,
        HeatMap: _heat_map_lines,
        Bars: _bar_lines,
        Lines: _curve_lines,
        Links: _link_lines,
        Thumbnails: _table_lines,
        Tree: _tree_lines,
    }[type(chart)]
    note = [visible(chart.note)] if chart.note else []
    return [visible(chart.title), *note, "", *body(chart, width)]  # type: ignore[operator]


def _table_lines(chart: Table | Thumbnails, width: int) -> list[str]:
    """Return the columns of the values side by side, numbers right-aligned."""
    table = chart.data
    cells = [list(map(visible, table.columns)), *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    while sum(widths) + 2 * len(widths) > width and max(widths) > _MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    numeric = [
        all(isinstance(row[column], int | float | None) for row in table.rows)
        for column in range(len(table.columns))
    ]
    lines = [
        "  ".join(
            pad_to_width(fit(cell, min(size, cell_len(cell))), size) if number else fit(cell, size)
            for cell, size, number in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    return [lines[0], "  ".join("─" * size for size in widths), *lines[1:]]


def _heat_map_lines(chart: HeatMap, width: int) -> list[str]:
    """Return the titles of the axes, and shade blocks; see `terminal.heat_map`."""
    titles = {"rows": visible(chart.rows.title), "columns": visible(chart.columns.title)}
    lines = [localize("Rows: {rows}. Columns: {columns}.", **titles)]
    if not chart.columns.names:
        chart, notes = _thin(chart, width)
        lines += notes
    rows, columns = (
        [fit(visible(name), min(_LABEL_COLUMNS, cell_len(visible(name)))).rstrip() for name in names]
        for names in (chart.rows.names, chart.columns.names)
    )
    return lines + heat_map(chart.values, rows, columns, width=width, high=chart.high, hidden=chart.hidden)


def _thin(chart: HeatMap, width: int) -> tuple[HeatMap, list[str]]:
    """Return a heat map with only some evenly spaced rows and columns, and a line that says so."""
    rows, columns = chart.values.shape
    row_step, column_step = -(-rows // _MAX_ROWS), max(1, -(-columns // max(1, (width - 30) // 2)))
    names = chart.rows.names or [str(row) for row in range(rows)]
    fewer = replace(
        chart,
        rows=replace(chart.rows, names=names[::row_step]),
        columns=replace(chart.columns, names=tuple(map(str, range(0, columns, column_step)))),
        values=chart.values[::row_step, ::column_step],
        hidden=None if chart.hidden is None else chart.hidden[::row_step, ::column_step],
    )
    if row_step == column_step == 1:
        return fewer, []
    steps = {"rows": row_step, "columns": column_step}
    return fewer, [localize("Shown: one row in {rows}, one column in {columns}.", **steps)]


def _bar_lines(chart: Bars, width: int) -> list[str]:
    """Return a bar and its number for each label; a doubtful bar has a "?"."""
    labels = [visible(bar.label) for bar in chart.bars]
    side = min(28, max(map(cell_len, labels), default=0))
    reach = max(abs(chart.low), abs(chart.high)) or 1.0
    lines = []
    for label, bar in zip(labels, chart.bars, strict=True):
        blocks = ("█" if bar.value >= 0 else "▒") * round(abs(bar.value) / reach * _BAR)
        line = f"{fit(label, side)} {'?' if bar.doubtful else ' '}{blocks:<{_BAR}} {chart.number(bar.value):>9}  "
        lines.append((line + fit(visible(bar.detail), max(20, width - cell_len(line)))).rstrip())
    doubtful = any(bar.doubtful for bar in chart.bars)
    return [*lines, *([f"? {chart.doubt}"] if doubtful and chart.doubt else [])]


def _link_lines(chart: Links, width: int) -> list[str]:
    """Return each word of the target with the words of the source that it is linked to, and their weights."""
    linked: dict[int, list[tuple[int, float]]] = {}
    for source, target, weight in chart.links:
        linked.setdefault(target, []).append((source, weight))
    rows = [(chart.target_title, f"{visible(chart.source_title)} ({chart.legend})")]
    for number, word in enumerate(chart.target):
        words = [f"{visible(chart.source[source])} ({weight:.2f})" for source, weight in linked.get(number, ())]
        rows.append((word, ", ".join(words)))
    side = max(cell_len(visible(word)) for word, _ in rows)
    return [f"{fit(visible(word), side)}  <- {words}".rstrip() for word, words in rows]


def _tree_lines(chart: Tree, width: int) -> list[str]:
    """Return the tree with the reason why each branch ended; the path of the best output is marked with ●."""
    tree = chart.tree
    children: dict[int | None, list[BeamNode]] = {}
    for node in tree.nodes:
        children.setdefault(node.parent, []).append(node)
    lines: list[str] = []
    stack = [(node, "", number == 0) for number, node in enumerate(reversed(children.get(None, [])))]
    while stack:
        node, indent, last = stack.pop()
        mark = "●" if node.best else "○" if node.state == "kept" else "×" if node.state in DROPPED else "■"
        text = f"{indent}{'└─' if last else '├─'}{mark} {visible(node.piece)} {node.total:.2f}"
        lines.append(f"{text}  {reason(node, tree)}".rstrip())
        deeper = indent + (" " if last else "│")
        below = children.get(node.number, [])
        stack += [(child, deeper, number == 0) for number, child in enumerate(reversed(below))]
    return lines


def _curve_lines(chart: Lines, width: int) -> list[str]:
    curves = [line for line in chart.lines if line.x]
    if not curves:
        return [localize("(no points yet)")]
    lines = [localize("x: {x}; y: {y}", x=chart.x_title, y=chart.y_title)]
    for line in curves:
        lines.append(localize("{curve}, last {value:.4g}", curve=visible(line.name), value=line.y[-1]))
        lines += _plot(chart, line)
    return lines


def _plot(chart: Lines, line: Line) -> list[str]:
    """Return one curve in braille dots between its axes."""
    (x_low, x_high), (y_low, y_high) = chart.extent()
    cells = [[0] * _PLOT_WIDTH for _ in range(_PLOT_HEIGHT)]
    wide, high = _PLOT_WIDTH * 2 - 1, _PLOT_HEIGHT * 4 - 1
    previous: tuple[int, int] | None = None
    for x, y in zip(line.x, line.y, strict=True):
        across = round(fraction(x, x_low, x_high) * wide)
        down = round((1 - chart.height(y, y_low, y_high)) * high)
        for column, row in _between(previous, (across, down)):
            cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        previous = (across, down)
    names = [f"{y_high:.4g}", *[""] * (_PLOT_HEIGHT - 2), f"{y_low:.4g}"]
    side = max(map(len, names))
    rows = [
        f"{name:>{side}} │{''.join(chr(0x2800 + dots) for dots in row)}"
        for name, row in zip(names, cells, strict=True)
    ]
    left, right = tick_text(x_low), tick_text(x_high)
    return [*rows, f"{'':>{side}} └{'─' * _PLOT_WIDTH}", f"{'':>{side}}  {left}{right:>{_PLOT_WIDTH - len(left)}}"]


def _between(first: tuple[int, int] | None, last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line, both ends included."""
    if first is None:
        yield last
        return
    steps = max(abs(last[0] - first[0]), abs(last[1] - first[1]), 1)
    for step in range(steps + 1):
        yield (
            round(first[0] + (last[0] - first[0]) * step / steps),
            round(first[1] + (last[1] - first[1]) * step / steps),
        )


def csv_of(charts: Sequence[Chart]) -> str:
    """Return the table of each chart, with an empty line between two; lines end in CR LF.

    A text that a spreadsheet would compute gets an apostrophe in front.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    for number, chart in enumerate(charts):
        if number:
            file.write("\r\n")
        table = chart.data
        writer.writerow(map(_safe, table.columns))
        writer.writerows([_safe(cell) for cell in row] for row in table.rows)
    return file.getvalue()


def _safe(cell: Cell) -> Cell:
    """Return a value that a spreadsheet does not compute."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) and len(cell) > 1 else cell
