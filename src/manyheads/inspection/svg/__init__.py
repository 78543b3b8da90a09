"""Charts as SVG, written by hand: self-contained, no script, no style sheet, no font, no link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from manyheads.inspection.charts import Bars, Chart, HeatMap, Lines, Links, Table, Thumbnails, Tree, visible
from manyheads.inspection.svg.canvas import FONTS, Canvas
from manyheads.inspection.svg.figures import draw_bars, draw_lines, draw_links, draw_table
from manyheads.inspection.svg.maps import draw_heat_map, draw_thumbnails
from manyheads.inspection.svg.tree import draw_tree

__all__ = ["svg_of"]

MARGIN = 16
LONGEST_NOTE = 110  # characters a line

DRAW: dict[type, Callable[[Any], Canvas]] = {
    Table: draw_table,
    HeatMap: draw_heat_map,
    Bars: draw_bars,
    Lines: draw_lines,
    Links: draw_links,
    Thumbnails: draw_thumbnails,
    Tree: draw_tree,
}


def svg_of(charts: Sequence[Chart], *, titled: bool = True) -> str:
    """Draw all charts in one document, on white; without titles for a page that has its own."""
    whole = Canvas()
    y = float(MARGIN)
    for chart in charts:
        if titled:
            whole.text(MARGIN, y + 14, chart.title, size=15, bold=True)
            for line in wrap(visible(chart.note), LONGEST_NOTE):
                whole.text(MARGIN, y + 34, line, size=11)
                y += 16
            y += 36
        whole.put(DRAW[type(chart)](chart), MARGIN, y)
        y = whole.height + 28
    width, height = whole.width + MARGIN, whole.height + MARGIN
    name = escape(visible("; ".join(chart.title for chart in charts)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{name}" font-family="{FONTS}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(whole.parts)}</svg>\n'
    )
