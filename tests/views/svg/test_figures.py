"""Curves are labelled at their ends without overlaps; bars, alignments and tables fit the width."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from tests.tolerances import approx, within
from tests.views.svg.drawing import marks, plot_of, texts, view_of

from manyheads.views.charts import Bar, Bars, Line, Lines, Links, Table
from manyheads.views.colours import NEGATIVE, POSITIVE
from manyheads.views.svg import svg_of

TABLE = Table("title", "", ("a",), ((1,),))


def curves(count: int, name: str = "run {}: validation loss") -> Lines:
    x = tuple(map(float, range(0, 500, 7)))
    lines = [
        Line(name.format(number), x, tuple(5 / (1 + point / 50) + number / 9 for point in x))
        for number in range(count)
    ]
    return Lines(TABLE, tuple(lines), "training step", "cross-entropy (nats per token)")


@pytest.mark.parametrize("width", [None, 77.0, 160.0])
@pytest.mark.parametrize("count", [1, 2, 4, 30])
def test_names_and_last_values_do_not_overlap_and_are_below_a_plot_that_has_no_room(
    count: int, width: float | None
) -> None:
    svg = svg_of([curves(count)], width=width)
    plot = plot_of(svg)
    named = [mark for mark in marks(svg) if mark.text.startswith("run ")]
    assert len(named) == count
    assert all(re.search(": [0123][.]", mark.text) for mark in named)
    ordered = sorted(named, key=lambda mark: mark.top)
    assert all(upper.bottom <= lower.top for upper, lower in itertools.pairwise(ordered))
    inside = [plot.left < mark.left and mark.right <= plot.right and mark.bottom < plot.bottom for mark in named]
    assert all(inside) if count < 30 else all(mark.top >= plot.bottom for mark in named)
    assert {"training step", "cross-entropy (nats per token)"} <= set(texts(svg))


def test_equal_ratios_are_equally_high_on_a_logarithmic_axis() -> None:
    chart = Lines(TABLE, (Line("one", (1.0, 2.0, 3.0), (8.0, 0.08, 0.0)),), "x", "y", logarithmic=True)
    low, high = chart.extent()[1]
    assert (low, high) == (0.08, 8.0)
    assert [chart.height(value, low, high) for value in (0.0, 0.08, 0.8, 8.0)] == approx([0, 0, 0.5, 1])
    assert chart.y_ticks(low, high) == approx([0.1, 0.2, 0.5, 1, 2, 5])
    assert chart.y_ticks(4.8, 4.9) == approx([4.8, 4.82, 4.84, 4.86, 4.88, 4.9])
    assert svg_of([Lines(TABLE, (Line("one", (1.0,), (0.0,)),), "x", "y", logarithmic=True)])


@pytest.mark.parametrize("width", [None, 77.0])
def test_bars_below_zero_are_on_the_other_side_in_another_colour(width: float | None) -> None:
    bars = (Bar("Hund", 2.0, "A runs."), Bar("und", -0.5, "A dog runs."))
    chart = Bars(TABLE, bars, low=-0.5, high=2.0, value_title="drop of the log-probability (nats)")
    svg = svg_of([chart], width=width)
    up, down = (
        [mark for mark in marks(svg) if mark.attributes.get("fill") == fill] for fill in (POSITIVE, NEGATIVE)
    )
    assert [len(up), len(down)] == [1, 1]
    assert down[0].right == within(up[0].left, 0.2)
    assert "−0.500" in texts(svg)
    assert any(text.startswith("drop of the log") for text in texts(svg))


def test_a_doubtful_bar_is_explained() -> None:
    chart = Bars(TABLE, (Bar("a", 0.3, doubtful=True), Bar("b", 0.9)), doubt="probability below 0.5")
    assert {"0.300 ?", "? probability below 0.5"} <= set(texts(svg_of([chart])))
    assert "? probability below 0.5" not in texts(svg_of([Bars(TABLE, (Bar("b", 0.9),), doubt=chart.doubt)]))


@pytest.mark.parametrize("width", [None, 77.0])
def test_an_alignment_names_both_languages_above_their_words_and_the_weight_of_lines(width: float | None) -> None:
    links = ((0, 0, 0.5), (1, 0, 0.9))
    chart = Links(TABLE, ("ein", "Hund"), ("개가",), links, "source (German)", "target (Korean)")
    svg = svg_of([chart], width=width)
    found = texts(svg)
    assert found["source (German)"].right < found["target (Korean)"].left
    assert found["source (German)"].right == within(found["Hund"].right, 1)
    assert found["target (Korean)"].left == within(found["개가"].left, 1)
    assert {"attention weight:", "0.25", "1"} <= set(found)
    assert svg.count("<title>") == 2


def test_a_table_is_cut_to_the_width() -> None:
    long = "word " * 60
    svg = svg_of([Table("title", "", ("rank", "text", "more"), ((1, long, long),))], width=120)
    assert view_of(svg)[0] == within(120 / 25.4 * 96, 1)
    assert sum(mark.text.endswith("…") for mark in marks(svg)) == 2


def test_a_plot_without_points_has_a_note() -> None:
    assert "(no points yet)" in texts(svg_of([Lines(TABLE, (), "x", "y")]))
    values = np.zeros(1)
    assert texts(svg_of([Lines(TABLE, (Line("one", (1.0,), tuple(values)),), "x", "y")]))
