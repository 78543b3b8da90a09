"""Tables of charts as CSV (RFC 4180) and as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape

from manyheads.inspection.charts import Cell, Chart, Table, shown, visible

__all__ = ["csv_of", "html_table"]

NUMBER = ' class="number"'
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(charts: Sequence[Chart]) -> str:
    """The table of each chart, an empty line between two; lines end in CR LF.

    A text that a spreadsheet would compute is put behind an apostrophe.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    for place, chart in enumerate(charts):
        if place:
            file.write("\r\n")
        table = chart.data
        writer.writerow(map(safe, table.columns))
        writer.writerows([safe(cell) for cell in row] for row in table.rows)
    return file.getvalue()


def safe(cell: Cell) -> Cell:
    """A value that is only looked at."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) and len(cell) > 1 else cell


def html_table(table: Table) -> str:
    """As a table element."""
    heads = "".join(f'<th scope="col" dir="auto">{escape(visible(name))}</th>' for name in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td dir="auto"{"" if isinstance(cell, str | None) else NUMBER}>{escape(shown(cell))}</td>'
            for cell in row
        )
        + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(visible(table.title))}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
