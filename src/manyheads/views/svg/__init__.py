"""Charts as SVG, written by hand: self-contained, no script, no style sheet, no font, no link."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from manyheads.views.charts import Bars, Chart, HeatMap, Lines, Links, Table, Thumbnails, Tree, visible
from manyheads.views.svg.canvas import FONTS, Canvas
from manyheads.views.svg.figures import draw_bars, draw_lines, draw_links, draw_table
from manyheads.views.svg.maps import draw_heat_map, draw_thumbnails
from manyheads.views.svg.tree import draw_tree

_WIDTH, _WIDEST = 800, 1_100  # width in pixels of a picture, and of one of many small maps
_MARGIN, _NARROW_MARGIN = 16, 2
PIXELS_PER_MM = 96 / 25.4
_POINTS_PER_PIXEL = 0.75
_SMALLEST_PRINT = 5.0  # points

_DRAW: dict[type, Callable[[Any, float], Canvas]] = {
    Table: draw_table,
    HeatMap: draw_heat_map,
    Bars: draw_bars,
    Lines: draw_lines,
    Links: draw_links,
    Thumbnails: draw_thumbnails,
    Tree: draw_tree,
}


def svg_of(charts: Sequence[Chart], width: float | None = None) -> str:
    """Draw all charts in one document, on white.

    Args:
        charts: charts, drawn below each other.
        width: width of the picture in millimetres for print; the charts are laid out for it, without titles and
            notes, and a chart that needs more is scaled down. A `UserWarning` says when its smallest text gets less
            than 5 points.
    """
    margin = _MARGIN if width is None else _NARROW_MARGIN
    page = _WIDTH if width is None else width * PIXELS_PER_MM
    canvas = Canvas()
    y = float(margin)
    for chart in charts:
        if width is None:
            y = _draw_heading(canvas, chart, margin, y)
        available = _WIDEST if width is None and isinstance(chart, Thumbnails) else page
        canvas.put(_DRAW[type(chart)](chart, available - 2 * margin), margin, y)
        y = canvas.height + 28
    height = canvas.height + margin
    if width is None:
        view, size = canvas.width + margin, (f"{canvas.width + margin:.0f}", f"{height:.0f}")
    else:
        view = max(page, canvas.width + margin)
        size = (f"{width:g}mm", f"{height * width / view:.2f}mm")
        _check_print(canvas.smallest, page / view, width)
    name = escape(visible("; ".join(chart.title for chart in charts)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {view:.0f} {height:.0f}" role="img" aria-label="{name}" font-family="{FONTS}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(canvas.parts)}</svg>\n'
    )


def _draw_heading(canvas: Canvas, chart: Chart, x: float, y: float) -> float:
    """Draw the title and the note of a chart; return the y below them."""
    canvas.text(x, y + 14, chart.title, size=15, bold=True)
    return canvas.paragraph(x, y + 34, chart.note, _WIDTH - 2 * x) + 18 if chart.note else y + 32


def _check_print(smallest: float, scale: float, width: float) -> None:
    """Warn of letters that are too small in print."""
    points = smallest * _POINTS_PER_PIXEL * scale
    if points < _SMALLEST_PRINT:
        warnings.warn(
            f"the smallest text is {points:.1f} pt at a width of {width:g} mm; less than {_SMALLEST_PRINT:g} pt is "
            f"hard to read. Use {width * _SMALLEST_PRINT / points:.0f} mm, or a shorter text.",
            stacklevel=4,
        )
