"""Charts as PNG, drawn by matplotlib (extra `plot`) from the same data."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from types import ModuleType
from typing import Any

from manyheads.errors import require
from manyheads.inspection.beam_tree import GONE, reason
from manyheads.inspection.charts import Bars, Chart, HeatMap, Lines, Links, Table, Thumbnails, Tree, shown, visible
from manyheads.inspection.colours import LINES
from manyheads.inspection.svg.canvas import clipped
from manyheads.inspection.terminal import display_width

__all__ = ["png_of"]

FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
)
FILES = ("NotoSansCJK", "NotoSansKR", "NanumGothic", "malgun", "AppleSDGothicNeo")  # how theirs begin
MAP = "cividis"
DASHES = ("-", "--", ":", "-.", (0, (4, 4)), (0, (12, 3)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "x", "+", "o")
NUMBERED = 900  # cells of a heat map that have numbers
NAMED = 60  # rows or columns at most that have names
MOST_ROWS = 150  # of a table
DOTS_PER_INCH = 110

Axes = Any  # matplotlib's own


def png_of(charts: Sequence[Chart]) -> bytes:
    """All charts below each other in one picture.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require("matplotlib", extra="plot", purpose="PNG")
    figures = require("matplotlib.figure", extra="plot", purpose="PNG")
    matplotlib = require("matplotlib", extra="plot", purpose="PNG")
    with matplotlib.rc_context({"font.family": families(), "font.size": 9, "axes.unicode_minus": False}):
        sizes = [size_of(chart) for chart in charts]
        heights = [size[1] for size in sizes]
        figure = figures.Figure(
            figsize=(max(size[0] for size in sizes), sum(heights)), dpi=DOTS_PER_INCH, layout="constrained"
        )
        rows = figure.subfigures(len(charts), 1, height_ratios=heights, squeeze=False)[:, 0]
        for part, chart in zip(rows, charts, strict=True):
            part.suptitle("\n".join([visible(chart.title), *wrap(visible(chart.note), 110)]), fontsize=10)
            DRAW[type(chart)](part, chart)
        return drawn(figure)


def drawn(figure: Any) -> bytes:
    """The picture; letters that no font has are told once."""
    file = io.BytesIO()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(file, format="png", facecolor="white")
    missing = sum("missing from font" in str(one.message) for one in told)
    if missing:
        warnings.warn(
            f"no font here has {missing} of the letters, which are boxes in the PNG. Install one that has them "
            "(Debian, Ubuntu: apt install fonts-nanum), or save as .svg.",
            stacklevel=2,
        )
    return file.getvalue()


def families() -> list[str]:
    """The fonts that are here, tried one after the other for each letter."""
    fonts: ModuleType = require("matplotlib.font_manager", extra="plot", purpose="PNG")
    known = set(fonts.fontManager.get_font_names())
    if not known & set(FAMILIES[1:]):  # matplotlib's own list may be older than what is installed
        for path in fonts.findSystemFonts():
            if Path(path).name.startswith(FILES):
                fonts.fontManager.addfont(path)
        known = set(fonts.fontManager.get_font_names())
    return [name for name in FAMILIES if name in known] or ["sans-serif"]


def size_of(chart: Chart) -> tuple[float, float]:
    """Width and height in inches."""
    if isinstance(chart, HeatMap):
        rows, columns = chart.values.shape
        cell = 0.34 if rows * columns <= NUMBERED else 0.1 if max(rows, columns) <= 120 else 0.04
        return 3.0 + columns * cell, 2.6 + rows * cell
    if isinstance(chart, Bars):
        return 13.0, 1.6 + 0.26 * len(chart.values)
    if isinstance(chart, Thumbnails):
        return 2.0 + 1.8 * chart.weights.shape[1], 1.0 + 1.9 * chart.weights.shape[0]
    if isinstance(chart, Tree):
        return 2.0 + 1.0 * chart.tree.steps, 1.5 + 0.42 * 2 * chart.tree.beam_size
    if isinstance(chart, Table):
        return 13.0, 1.2 + 0.24 * min(MOST_ROWS, len(chart.rows) + 1)
    if isinstance(chart, Links):
        return 1.5 + 0.12 * max(
            sum(map(display_width, words)) + 2 * len(words) for words in (chart.above, chart.below)
        ), 2.6
    return 9.0, 4.6


def draw_heat_map(part: Any, chart: HeatMap) -> None:
    """Shades, with numbers where there is room."""
    axes = part.subplots()
    image = axes.imshow(chart.values, cmap=MAP, vmin=chart.low, vmax=chart.high, aspect="auto")
    rows, columns = chart.values.shape
    numbered = rows * columns <= NUMBERED and bool(chart.columns)
    middle = (chart.low + chart.high) / 2
    for row in range(rows):
        for column in range(columns):
            hidden = chart.hidden is not None and bool(chart.hidden[row, column])
            if hidden:
                axes.add_patch(patch(column, row))
            elif numbered:
                value = float(chart.values[row, column])
                ink = "black" if value > middle else "white"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
    if chart.columns and max(rows, columns) <= NAMED:
        axes.set_xticks(range(columns), [clipped(name, 20) for name in chart.columns], rotation=60, ha="right")
        axes.set_yticks(range(rows), [clipped(name, 20) for name in chart.rows])
    axes.set_xlabel(chart.column_title)
    axes.set_ylabel(chart.row_title)
    part.colorbar(image, ax=axes, fraction=0.03)


def patch(column: int, row: int) -> Any:
    """A cell that has no value."""
    patches = require("matplotlib.patches", extra="plot", purpose="PNG")
    return patches.Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="white", edgecolor="#d9d9d9", hatch="//")


def draw_bars(part: Any, chart: Bars) -> None:
    """Bars with their numbers and what is written beside them."""
    axes = part.subplots()
    places = range(len(chart.values))
    bars = axes.barh(list(places), chart.values, color=LINES[0])
    for bar, value, doubtful in zip(bars, chart.values, chart.doubtful, strict=True):
        if doubtful or value < 0:
            bar.set(facecolor="white", edgecolor=LINES[0], linestyle="--")
    axes.set_yticks(
        list(places),
        [clipped(label, 30) + " ?" * mark for label, mark in zip(chart.labels, chart.doubtful, strict=True)],
    )
    low, high = min(0.0, chart.low), max(0.0, chart.high)
    axes.set_xlim(low, low + ((high - low) or 1.0) * 4)  # what stands beside the bars needs most of the room
    axes.set_xticks([low, high] if low else [0.0, high / 2, high])
    for place, (value, detail) in enumerate(zip(chart.values, chart.details, strict=True)):
        axes.text(
            high + (high - low) * 0.03,
            place,
            f"{chart.number(value)}  {clipped(detail, 90)}",
            va="center",
            fontsize=8,
        )
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_bounds(low, high)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlabel(chart.value_title, loc="left")


def draw_lines(part: Any, chart: Lines) -> None:
    """Curves that differ in colour, dash and marker."""
    axes = part.subplots()
    for number, line in enumerate(chart.lines):
        kind = number % len(LINES)
        axes.plot(
            line.x, line.y, color=LINES[kind], linestyle=DASHES[kind], marker=MARKERS[kind], markersize=4,
            markevery=max(1, len(line.x) // 12), label=visible(line.name),
            markerfacecolor="none" if kind == len(LINES) - 1 else None,
        )  # fmt: skip
    axes.set_xlabel(chart.x_title)
    axes.set_ylabel(chart.y_title)
    axes.grid(alpha=0.3)
    if chart.lines:
        axes.legend(fontsize=8)


def draw_links(part: Any, chart: Links) -> None:
    """Two rows of words, a line for each link."""
    axes = blank(part)
    places = [centres(words) for words in (chart.above, chart.below)]
    for above, below, weight in chart.links:
        axes.plot([places[0][above], places[1][below]], [0.82, 0.18], color=LINES[0], linewidth=0.6 + 2.4 * weight)
    for row, (words, height) in enumerate(((chart.above, 0.92), (chart.below, 0.08))):
        for x, word in zip(places[row], words, strict=True):
            axes.text(x, height, clipped(word, 30), ha="center", va="center")
    axes.set_xlim(0, max((x for row in places for x in row), default=1) + 4)
    axes.set_ylim(0, 1)


def centres(words: Sequence[str]) -> list[float]:
    """Where the middle of each word is, in columns of text."""
    found, left = [], 0.0
    for word in words:
        wide = display_width(visible(word)) + 2
        found.append(left + wide / 2)
        left += wide
    return found


def draw_thumbnails(part: Any, chart: Thumbnails) -> None:
    """A row for each layer, a column for each head."""
    layers, heads = chart.weights.shape[:2]
    every = part.subplots(layers, heads, squeeze=False)
    for layer in range(layers):
        for head in range(heads):
            axes = every[layer, head]
            axes.imshow(chart.weights[layer, head], cmap=MAP, vmin=0, vmax=1, aspect="auto")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(f"{layer}/{head}: {chart.entropy[layer, head]:.2f} nats", fontsize=8)


def draw_tree(part: Any, chart: Tree) -> None:
    """A column for each step, candidates by rank."""
    axes, tree = blank(part), chart.tree
    places: dict[int, tuple[int, int]] = {}
    seen: dict[int, int] = {}
    for node in tree.nodes:
        row = seen.get(node.step, 0)
        seen[node.step] = row + 1
        places[node.number] = (node.step, row)
    for node in tree.nodes:
        x, y = places[node.number]
        gone = node.state in GONE
        if node.parent is not None:
            left, top = places[node.parent]
            axes.plot(
                [left, x], [top, y], color=LINES[0] if node.best else "#6b6b6b", zorder=1,
                linewidth=2.5 if node.best else 0.7, linestyle="--" if gone else "-",
            )  # fmt: skip
        line = {"edgecolor": LINES[0] if node.best else "#1a1a1a", "linestyle": "--" if gone else "-"}
        wide = 2.0 if node.best else 0.8
        style = {"boxstyle": "round,pad=0.25", "facecolor": "#e8e8e8" if node.state == "finished" else "white"}
        axes.text(
            x, y, f"{clipped(node.piece, 12)}\n{node.total:.2f}", ha="center", va="center", fontsize=7,
            bbox={**style, **line, "linewidth": wide},
        )  # fmt: skip
    axes.set_xlim(-0.6, tree.steps - 0.4)
    axes.set_ylim(max(seen.values(), default=1) - 0.4, -0.6)
    axes.set_title("grey: finished; dashed: " + reason_of_pruning(chart), fontsize=8)


def reason_of_pruning(chart: Tree) -> str:
    """An example of why a branch was pruned."""
    node = next((one for one in chart.tree.nodes if one.state == "pruned"), None)
    return "pruned" if node is None else f'pruned, as "{visible(node.piece)}" {reason(node, chart.tree)}'


def draw_table(part: Any, chart: Table) -> None:
    """As text; of a long table the beginning."""
    axes = blank(part)
    rows = [[clipped(shown(cell), 56) for cell in row] for row in chart.rows[:MOST_ROWS]]
    if len(chart.rows) > MOST_ROWS:
        more = f"... {len(chart.rows) - MOST_ROWS:,} more rows"
        rows.append([more, *[""] * (len(chart.columns) - 1)])
    heads = [visible(name) for name in chart.columns]
    table = axes.table(rows or [[""] * len(heads)], colLabels=heads, loc="upper left", cellLoc="left")
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    table.auto_set_column_width(list(range(len(chart.columns))))


def blank(part: Any) -> Axes:
    """Room to draw in, without axes."""
    axes = part.subplots()
    axes.set_axis_off()
    return axes


DRAW: dict[type, Callable[[Any, Any], None]] = {
    Table: draw_table,
    HeatMap: draw_heat_map,
    Bars: draw_bars,
    Lines: draw_lines,
    Links: draw_links,
    Thumbnails: draw_thumbnails,
    Tree: draw_tree,
}
