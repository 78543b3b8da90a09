"""A PNG shows what the SVG shows, on white, with its text; a font that is missing is reported."""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.tolerances import within

from manyheads.errors import MissingExtraError, UsageError
from manyheads.views.beam_tree import BeamNode, BeamTree
from manyheads.views.charts import (
    Axis,
    Bar,
    Bars,
    Chart,
    HeatMap,
    Line,
    Lines,
    Links,
    Table,
    Thumbnails,
    Tree,
)
from manyheads.views.png import png_of
from manyheads.views.svg import svg_of

TABLE = Table("title", "note", ("token", "rank"), (("dog", 1), ("cat", 2)))
VALUES = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
NODE = BeamNode(0, None, 0, 5, "dog", -0.5, -0.5, -0.5, 1, "finished", None, True)
AXES = Axis("r", ["a", "b"]), Axis("c", ["c", "d", "e"])
CHARTS: dict[str, Chart] = {
    "table": TABLE,
    "heat map": HeatMap("title", "", *AXES, VALUES),
    "bars": Bars(TABLE, (Bar("a", 0.3, doubtful=True), Bar("b", 0.7, "x"))),
    "lines": Lines(TABLE, (Line("loss", (1.0, 2.0), (3.0, 1.0)),), "step", "nats"),
    "links": Links(TABLE, ("ein",), ("a",), ((0, 0, 0.5),), "source", "target"),
    "thumbnails": Thumbnails(TABLE, VALUES.reshape(1, 1, 2, 3), np.ones((1, 1), np.float32), *AXES),
    "tree": Tree(TABLE, BeamTree(1, 1.0, 1, "beam-full", (NODE,))),
}


@pytest.fixture
def resvg() -> Any:
    return pytest.importorskip("resvg_py")


def size_of(png: bytes) -> tuple[int, int]:
    """Return width and height in pixels, from the header chunk."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def first_pixel(png: bytes) -> bytes:
    """Return the upper left pixel (RGBA), which no row filter of PNG changes."""
    at, data = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(data)[1:5]


def with_title(chart: Chart, title: str) -> Chart:
    """Return a chart with another title."""
    if isinstance(chart, Table | HeatMap):
        return replace(chart, title=title)
    return replace(chart, data=replace(chart.data, title=title))


@pytest.mark.parametrize("kind", sorted(CHARTS))
def test_every_kind_of_chart_is_drawn_with_its_text_on_white(kind: str, resvg: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        png = png_of([CHARTS[kind]])
    svg = svg_of([CHARTS[kind]])
    empty = f"{svg[: svg.index('<text')]}</svg>"
    assert first_pixel(png) == b"\xff\xff\xff\xff"
    assert png != resvg.svg_to_bytes(svg_string=empty, zoom=2.0), "not blank"
    assert png != resvg.svg_to_bytes(svg_string=svg, zoom=2.0, skip_system_fonts=True), "the text is drawn"
    assert png != png_of([with_title(CHARTS[kind], "another title")])


def test_the_scale_is_the_number_of_pixels_for_a_unit_of_the_svg(resvg: Any) -> None:
    width, height = size_of(png_of([TABLE], scale=1.0))
    assert f'width="{width}" height="{height}"' in svg_of([TABLE])
    assert size_of(png_of([TABLE], scale=3.0)) == (3 * width, 3 * height)


def test_a_huge_picture_is_drawn_at_a_smaller_scale(resvg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.views.png._MAX_PIXELS", 10**6)
    width, height = size_of(png_of([TABLE], scale=500.0))
    assert 0.98e6 < width * height < 1.02e6


def test_a_width_in_millimetres_is_drawn_at_300_dpi_and_stored_in_the_file(resvg: Any) -> None:
    png = png_of([TABLE], width=77.0)
    assert size_of(png)[0] == within(77 / 25.4 * 300, 2)
    at = png.index(b"pHYs")
    dots, same, metre = struct.unpack(">IIB", png[at + 4 : at + 13])
    assert (dots, metre) == (same, 1)
    assert size_of(png)[0] / dots == within(0.077, 0.077e-3)
    assert zlib.crc32(png[at : at + 13]) == struct.unpack(">I", png[at + 13 : at + 17])[0]
    assert first_pixel(png) == b"\xff\xff\xff\xff"


def test_characters_that_no_font_has_are_counted_in_a_warning(resvg: Any) -> None:
    letters = "\u0378\u0379"  # unassigned in Unicode
    with pytest.warns(UserWarning, match=r"no font here has 2 of the letters, .*apt install fonts-nanum"):
        png_of([replace(TABLE, rows=((letters + letters, 1),))])


def test_the_error_on_a_machine_without_fonts_says_how_to_install_one(
    resvg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resvg, "svg_to_bytes", partial(resvg.svg_to_bytes, skip_system_fonts=True))
    with pytest.raises(UsageError, match=r"none was found on this machine\. Install one .* or save as \.svg"):
        png_of([TABLE])


def test_without_the_extra_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=r'PNG needs the package resvg_py.*pip install "manyheads\[plot\]"'):
        png_of([TABLE])
