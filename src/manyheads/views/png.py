"""Charts as PNG: their SVG, rendered by resvg (extra `plot`)."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from manyheads.errors import UsageError, require
from manyheads.views.charts import Chart
from manyheads.views.svg import PIXELS_PER_MM, svg_of
from manyheads.views.svg.canvas import FONTS

_SCALE = 2.0  # pixels of the PNG per unit of the SVG, along each axis
_PRINT_DPI = 300
_PRINT_SCALE = _PRINT_DPI / 96
_HEADER = 33  # bytes of the signature and the chunk IHDR
_MAX_PIXELS = 40_000_000  # about 160 MB while rendering
_UNASSIGNED = "\U0010ffff"  # a code point that no font has a glyph for


def png_of(charts: Sequence[Chart], scale: float = _SCALE, *, width: float | None = None) -> bytes:
    """Render the SVG of all charts, below each other on white, as one PNG.

    Letters that no installed font has are drawn as boxes; a `UserWarning` counts them.

    Args:
        charts: the charts to draw.
        scale: pixels per unit of the SVG; a smaller scale is used for a picture of more than `_MAX_PIXELS`.
        width: width in millimetres for print, see `svg_of`; the scale then gives 300 dpi.
    """
    render: Callable[..., bytes] = require("resvg_py", extra="plot", purpose="PNG").svg_to_bytes
    svg = svg_of(charts, width)
    root = ElementTree.fromstring(svg)
    _check_fonts("".join(mark.text or "" for mark in root.iter("{http://www.w3.org/2000/svg}text")), render)
    unit = 1.0 if width is None else PIXELS_PER_MM
    area = math.prod(float(root.attrib[side].removesuffix("mm")) * unit for side in ("width", "height"))
    requested = scale if width is None else _PRINT_SCALE
    zoom = min(requested, math.sqrt(_MAX_PIXELS / area))
    png = bytes(render(svg_string=svg, zoom=zoom, dpi=96, background="#ffffff"))
    return png if width is None else _with_resolution(png, _PRINT_DPI)


def _with_resolution(png: bytes, dpi: float) -> bytes:
    """Return a PNG that states its resolution, by which programs know its size in print (chunk pHYs)."""
    per_metre = round(dpi / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    return png[:_HEADER] + struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[_HEADER:]


def _check_fonts(text: str, render: Callable[..., bytes]) -> None:
    """Warn of the letters of a text that no installed font has; raise `UsageError` without any usable font.

    resvg draws a letter without a glyph as the same box as any other such letter, and draws nothing without a font.
    """
    box = _glyph(_UNASSIGNED, render)
    if _glyph("A", render) == _glyph(" ", render):
        raise UsageError(
            "PNG needs a font for its text, and none was found on this machine. Install one (Debian, Ubuntu: "
            "apt install fonts-dejavu-core), or save as .svg."
        )
    missing = sum(_glyph(letter, render) == box for letter in set(text) if not letter.isascii())
    if missing:
        warnings.warn(
            f"no font here has {missing} of the letters, which are boxes in the PNG. Install one that has them "
            "(Debian, Ubuntu: apt install fonts-nanum), or save as .svg.",
            stacklevel=3,
        )


def _glyph(letter: str, render: Callable[..., bytes]) -> bytes:
    return render(
        svg_string=f'<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" font-family="{FONTS}">'
        f'<text x="2" y="18" xml:space="preserve">{letter}</text></svg>'
    )
