"""Charts as PNG: their SVG, rendered by resvg (extra `plot`)."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from manyheads.errors import UsageError, require
from manyheads.inspection.charts import Chart
from manyheads.inspection.svg import svg_of
from manyheads.inspection.svg.canvas import FONTS

__all__ = ["png_of"]

SCALE = 2.0  # pixels of the PNG per unit of the SVG, along each axis
MAX_PIXELS = 40_000_000  # about 160 MB while rendering
UNASSIGNED = "\U0010ffff"  # a code point that no font has a glyph for


def png_of(charts: Sequence[Chart], scale: float = SCALE) -> bytes:
    """Render the SVG of all charts, below each other on white, as one PNG.

    Letters that no installed font has are drawn as boxes; a `UserWarning` counts them.

    Args:
        charts: what to draw.
        scale: pixels per unit of the SVG; a smaller scale is used for a picture of more than `MAX_PIXELS`.

    Raises:
        MissingExtraError: resvg_py is not installed.
        UsageError: no installed font can be used, so that the picture would be without any text.
    """
    render: Callable[..., bytes] = require("resvg_py", extra="plot", purpose="PNG").svg_to_bytes
    svg = svg_of(charts)
    check_fonts(svg, render)
    return render(svg_string=svg, zoom=min(scale, math.sqrt(MAX_PIXELS / area(svg))))


def area(svg: str) -> float:
    """Return width times height of an SVG document of ours."""
    size = re.match(r'<svg [^>]*?width="(\d+)" height="(\d+)"', svg)
    assert size is not None
    return float(size[1]) * float(size[2])


def check_fonts(svg: str, render: Callable[..., bytes]) -> None:
    """Warn of the letters that no installed font has; raise `UsageError` where there is no usable font at all.

    resvg draws a letter without a glyph as the same box as any other such letter, and draws nothing without a font.
    """
    box = glyph(UNASSIGNED, render)
    if glyph("A", render) == glyph(" ", render):
        raise UsageError(
            "PNG needs a font for its text, and none was found on this machine. Install one (Debian, Ubuntu: "
            "apt install fonts-dejavu-core), or save as .svg."
        )
    letters = {letter for text in texts(svg) for letter in text if not letter.isascii()}
    missing = sum(glyph(letter, render) == box for letter in letters)
    if missing:
        warnings.warn(
            f"no font here has {missing} of the letters, which are boxes in the PNG. Install one that has them "
            "(Debian, Ubuntu: apt install fonts-nanum), or save as .svg.",
            stacklevel=3,
        )


def texts(svg: str) -> list[str]:
    """Return the texts that an SVG document shows."""
    marks: list[Any] = list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    return [mark.text or "" for mark in marks]


def glyph(letter: str, render: Callable[..., bytes]) -> bytes:
    """Render one letter alone, as PNG."""
    return render(
        svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" font-family="{FONTS}">'
        f'<text x="2" y="18" xml:space="preserve">{letter}</text></svg>'
    )
