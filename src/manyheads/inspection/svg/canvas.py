"""The elements of a drawing as SVG text; units are pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from rich.cells import cell_len

from manyheads.inspection.charts import visible
from manyheads.inspection.colours import INK
from manyheads.inspection.terminal import fit

__all__ = ["FONTS", "FONT_SIZE", "Canvas", "clipped", "text_width"]

FONTS = (
    "'DejaVu Sans','Noto Sans KR','Noto Sans CJK KR','Malgun Gothic','Apple SD Gothic Neo',NanumGothic,"
    "'Nanum Gothic',Arial,sans-serif"
)
FONT_SIZE = 12  # pixels
COLUMN_WIDTH = 0.62  # width of a column of text over the size of its letters


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Estimate the width of a text."""
    return cell_len(text) * size * COLUMN_WIDTH


def clipped(text: str, columns: int) -> str:
    """Return a text without control characters, cut after so many columns with an ellipsis."""
    plain = visible(text)
    return plain if cell_len(plain) <= columns else fit(plain, columns).rstrip()


@dataclass
class Canvas:
    """Elements in drawing order, and the size of the drawing."""

    width: float = 0.0
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

    def reach(self, x: float, y: float) -> None:
        """Extend the drawing to a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = FONT_SIZE,
        anchor: str = "start",
        fill: str = INK,
        turn: float = 0.0,
        bold: bool = False,
    ) -> None:
        """Add a text whose base line starts, ends or has its middle at a point; `turn` in degrees."""
        shown = escape(visible(text))
        turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"{weight}'
            f'{turned} xml:space="preserve">{shown}</text>'
        )
        reached = text_width(text, size) * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor]
        self.reach(x + (reached if not turn else size), y + size * 0.4)

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, extra: str = "", title: str = ""
    ) -> None:
        """Add a rectangle; its title is shown under the pointer."""
        label = f"<title>{escape(visible(title))}</title>" if title else ""
        end = f">{label}</rect>" if label else "/>"
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}" fill="{fill}"'
            f"{' ' + extra if extra else ''}{end}"
        )
        self.reach(x + width, y + height)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 1.0, dash: str = ""
    ) -> None:
        """Add a straight line."""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
            f'stroke-width="{width:g}"{dashed}/>'
        )
        self.reach(max(x1, x2), max(y1, y2))

    def path(
        self, data: str, *, stroke: str = "none", fill: str = "none", width: float = 1.0, dash: str = ""
    ) -> None:
        """Add a path."""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        drawn = f' stroke="{stroke}" stroke-width="{width:g}"{dashed}' if stroke != "none" else ""
        crisp = ' shape-rendering="crispEdges"' if stroke == "none" else ""
        self.parts.append(f'<path d="{data}" fill="{fill}"{drawn}{crisp}/>')

    def put(self, other: Canvas, x: float, y: float) -> None:
        """Add another drawing with its upper left corner at a point."""
        self.parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{"".join(other.parts)}</g>')
        self.reach(x + other.width, y + other.height)
