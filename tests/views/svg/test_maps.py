"""Heat maps name their axes and scale, and every head has the names of its tokens beside it."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from tests.views.svg.drawing import marks, texts, view_of

from manyheads.views.charts import Axis, HeatMap, Table, Thumbnails
from manyheads.views.colours import hexadecimal, shade
from manyheads.views.svg import svg_of

SOURCE = Axis("source (German)", ["▁Ein", "▁Hund", "läuft", ".", "</s>"])
TARGET = Axis("target (English)", ["▁A", "▁dog", "</s>"])
WEIGHTS = np.linspace(0, 1, 15, dtype=np.float32).reshape(3, 5)


def heat_map(**more: object) -> HeatMap:
    return HeatMap("title", "note", TARGET, SOURCE, WEIGHTS, "weight", **more)  # type: ignore[arg-type]


def heads(count: int = 4, layers: int = 2) -> Thumbnails:
    weights = np.broadcast_to(WEIGHTS, (layers, count, *WEIGHTS.shape))
    data = Table("heads", "", ("layer",), ((0,),))
    return Thumbnails(data, weights, np.ones((layers, count), np.float32), TARGET, SOURCE, "weight")


@pytest.mark.parametrize("width", [None, 77.0])
@pytest.mark.parametrize("chart", [heat_map(), heads()])
def test_axes_and_scale_are_named_outside_the_cells(chart: HeatMap | Thumbnails, width: float | None) -> None:
    svg = svg_of([chart], width=width)
    found = texts(svg)
    assert {"target (English)", "source (German)", "weight", "0", "1"} <= set(found)
    corner = found["␣A"]
    assert found["source (German)"].bottom <= found["läuft"].top + 1, "above the names of the columns"
    assert found["target (English)"].right <= corner.left + 1, "at the left of the names of the rows"
    cells = [mark for mark in marks(svg) if mark.tag == "rect" and "<title>" not in mark.text]
    assert found["weight"].top > found["</s>"].top
    assert cells


def test_every_token_is_named_where_the_names_fit_and_some_tokens_elsewhere() -> None:
    assert {"␣Ein", "␣Hund", "läuft", ".", "</s>", "␣A", "␣dog"} <= set(texts(svg_of([heat_map()])))
    many = [f"t{number}" for number in range(120)]
    svg = svg_of([HeatMap("", "", Axis("rows", many), Axis("columns", many), np.zeros((120, 120), np.float32))])
    shown = [mark for text, mark in texts(svg).items() if re.fullmatch(r"t\d+", text)]
    rows = sorted((mark for mark in shown if mark.attributes["text-anchor"] == "end"), key=lambda mark: mark.top)
    assert rows[0].text == "t0"
    assert 20 < len(rows) < 120
    assert all(upper.bottom <= lower.top for upper, lower in itertools.pairwise(rows)), "no overlap"


def test_the_scale_of_signed_values_is_symmetric_about_zero() -> None:
    values = np.array([[-1.0, 0.0, 2.0]], np.float32)
    chart = HeatMap("", "", Axis("r", ["r"]), Axis("c", ["a", "b", "c"]), values, high=2.0, signed=True)
    assert (chart.low, chart.high) == (-2.0, 2.0)
    svg = svg_of([chart])
    assert {"−2", "0", "2"} <= set(texts(svg))
    for value, share in ((-1.0, 0.25), (0.0, 0.5), (2.0, 1.0)):
        fill = hexadecimal(shade(share, signed=True))
        assert re.search(rf'fill="{fill}"[^>]*><title>r / [abc]: {value:.4f}<', svg), value


def test_a_masked_cell_is_explained() -> None:
    hidden = np.zeros(WEIGHTS.shape, np.bool_)
    assert "masked" not in texts(svg_of([heat_map(hidden=hidden)]))
    hidden[0, 4] = True
    assert "masked" in texts(svg_of([heat_map(hidden=hidden)]))


@pytest.mark.parametrize("width", [None, 77.0, 160.0])
@pytest.mark.parametrize("count", [1, 4, 8])
def test_heads_are_side_by_side_and_wrap_to_the_width(count: int, width: float | None) -> None:
    svg = svg_of([heads(count)], width=width)
    drawn = [mark for mark in marks(svg) if mark.tag == "rect" and mark.attributes.get("stroke-width") == "0.5"]
    assert len(drawn) == 2 * count
    assert max(mark.right for mark in drawn) <= view_of(svg)[0]
    named = [mark.text for mark in marks(svg) if mark.text.startswith("head ")]
    assert named == 2 * [f"head {head}" for head in range(count)]
    lines = len({mark.top for mark in drawn})
    assert sum(mark.text == "␣A" for mark in marks(svg)) == lines, "the names of the rows beside each line"
