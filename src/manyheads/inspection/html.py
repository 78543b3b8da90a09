"""Charts as one self-contained page of pictures and tables, without scripts or external resources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from manyheads.inspection.charts import Chart, Table, shown, visible
from manyheads.inspection.svg import svg_of
from manyheads.inspection.words import localize, reader_language

_STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, 'Noto Sans KR', 'Malgun Gothic', sans-serif; margin: 1.5rem auto; max-width: 80rem;
  padding: 0 1rem; line-height: 1.5; color: light-dark(#1b1d21, #eceef1); background: light-dark(#f7f7f5, #131517);
}
h1 { font-size: 1.375rem; line-height: 1.4; }
h2 { font-size: 1.125rem; margin: 2.5rem 0 0.25rem; }
p { margin: 0.25rem 0 0.75rem; }
.picture { overflow-x: auto; background: #fff; border: 1px solid #dddfe3; border-radius: 12px; padding: 0.25rem;
  width: fit-content; max-width: 100%; box-sizing: border-box; }
.picture svg { display: block; }
details, .values { margin: 0.5rem 0; overflow-x: auto; }
summary { cursor: pointer; padding: 0.25rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; }
caption { text-align: start; font-weight: bold; padding: 0.25rem 0; }
th, td { border: 1px solid #8a8a8a; padding: 0.15rem 0.5rem; text-align: start; }
.number { text-align: end; font-variant-numeric: tabular-nums; }
"""
_NUMBER_CLASS = ' class="number"'
_PAGE = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{digest}'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1 dir="auto">{title}</h1>
{body}
</body>
</html>
"""


def page_of(title: str, charts: Sequence[Chart]) -> str:
    """Return a page; its content security policy allows its own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")
    parts = {"title": escape(visible(title)), "style": _STYLE, "body": fragment_of(charts)}
    return _PAGE.format(digest=digest, language=reader_language(), **parts)


def fragment_of(charts: Sequence[Chart]) -> str:
    """Return the charts below each other, each with its values as a table."""
    return "\n".join(map(_section, charts))


def _section(chart: Chart) -> str:
    """Return one chart as HTML: a picture and its values, or only a table."""
    head = f'<h2>{escape(visible(chart.title))}</h2>\n<p dir="auto">{escape(visible(chart.note))}</p>'
    table = _html_table(chart.data)
    if isinstance(chart, Table):
        return f'<section>\n{head}\n<div class="values">{table}</div>\n</section>'
    picture = svg_of([chart], titled=False)
    return (
        f'<section>\n{head}\n<div class="picture">{picture}</div>\n'
        f"<details><summary>{localize('Show as table')}</summary>{table}</details>\n</section>"
    )


def _html_table(table: Table) -> str:
    heads = "".join(f'<th scope="col" dir="auto">{escape(visible(name))}</th>' for name in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td dir="auto"{"" if isinstance(cell, str | None) else _NUMBER_CLASS}>{escape(shown(cell))}</td>'
            for cell in row
        )
        + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(visible(table.title))}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
