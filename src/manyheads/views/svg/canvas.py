"""The elements of a drawing as SVG text; units are pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from rich.cells import cell_len

from manyheads.views.charts import visible
from manyheads.views.colours import INK

_KOREAN_FONTS = "'Noto Sans KR','Noto Sans CJK KR','Malgun Gothic','Apple SD Gothic Neo',NanumGothic,'Nanum Gothic'"
FONTS = "'DejaVu Sans',Arial,sans-serif"
FONT_SIZE, SMALL = 12, 11  # pixels
# Width of a letter over the size of its font, a little more than in DejaVu Sans, the widest of the fonts above.
_NARROW, _COMMON, _CAPITAL, _BROAD = 0.38, 0.63, 0.75, 1.0
_NARROW_LETTERS, _BROAD_LETTERS = frozenset(" .,:;'|!()[]ijlftIr-"), frozenset("mwMW@%—…")


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Estimate the width of a text."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    """Estimate the width of a letter in a font of size 1."""
    cells = cell_len(letter)
    if cells != 1:
        return cells / 2
    if letter in _NARROW_LETTERS:
        return _NARROW
    return _BROAD if letter in _BROAD_LETTERS else _CAPITAL if letter.isupper() else _COMMON


def widest(texts: Iterable[str], size: float = FONT_SIZE) -> float:
    """Estimate the width of the widest of some texts; 0 without any."""
    return max((text_width(_display(text), size) for text in texts), default=0.0)


def _display(text: str) -> str:
    """Return a text as it is drawn: without control characters, and the blank before a word as ␣."""
    return visible(text).replace("▁", "␣")


def clip(text: str, width: float, size: float = FONT_SIZE) -> str:
    """Return a text as it is drawn, cut to a width with an ellipsis."""
    plain = _display(text)
    if text_width(plain, size) <= width:
        return plain
    while plain and text_width(plain + "…", size) > width:
        plain = plain[:-1]
    return plain.rstrip() + "…"


@dataclass
class Canvas:
    """Elements in drawing order, the size of the drawing, and the size of its smallest letters."""

    width: float = 0.0
    height: float = 0.0
    smallest: float = FONT_SIZE
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
        shown = _display(text)
        turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
        weight = ' font-weight="bold"' if bold else ""
        # A renderer may take letters that the first font lacks from a font of any weight.
        korean = (
            f' font-family="{_KOREAN_FONTS},sans-serif"' if any("가" <= letter <= "힣" for letter in shown) else ""
        )
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"{weight}'
            f'{turned}{korean} xml:space="preserve">{escape(shown)}</text>'
        )
        self.smallest = min(self.smallest, size)
        width = text_width(shown, size) * (1.1 if bold else 1.0)
        start = -width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        for along in (start, start + width):
            for across in (-0.8 * size, 0.3 * size):
                self.reach(x + along * cos - across * sin, y + along * sin + across * cos)

    def paragraph(self, x: float, y: float, text: str, width: float, size: float = SMALL) -> float:
        """Add a text in as many lines as its width needs; return the y of the last line."""
        line = ""
        for word in visible(text).split():
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, size) > width:
                self.text(x, y, line, size=size)
                y, longer = y + size + 4, word
            line = longer
        self.text(x, y, line, size=size)
        return y

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
        self.smallest = min(self.smallest, other.smallest)
        self.reach(x + other.width, y + other.height)
