"""The tree of a beam search fits the width: its steps are columns, or rows where the columns would be too wide."""

from __future__ import annotations

from itertools import combinations

import pytest
from tests.search.tables import Table as Probabilities
from tests.tolerances import within
from tests.views.svg.drawing import Mark, marks, texts, view_of
from tests.views.test_beam_tree import SETTINGS, recorded_tree

from manyheads.views.charts import Table, Tree
from manyheads.views.svg import svg_of
from manyheads.views.svg.tree import _BOX

TREE = recorded_tree(Probabilities(4, size=11), **SETTINGS)
CHART = Tree(Table("title", "", (), ()), TREE)
PAGE, COLUMN = 190.0, 77.0  # millimetres: wide enough for the columns of TREE, and not


def boxes(svg: str) -> list[Mark]:
    """Return the box of each node."""
    return [mark for mark in marks(svg) if mark.tag == "rect" and mark.bottom - mark.top == pytest.approx(_BOX)]


def test_steps_are_columns_where_they_fit_and_rows_elsewhere() -> None:
    steps = 1 + max(node.step for node in TREE.nodes)
    for width, across in ((PAGE, steps), (COLUMN, max(node.rank for node in TREE.nodes))):
        found = boxes(svg_of([CHART], width=width))
        assert len(found) == len(TREE.nodes)
        assert len({mark.left for mark in found}) == across, width
    assert steps != max(node.rank for node in TREE.nodes)


@pytest.mark.parametrize("width", [60.0, COLUMN, PAGE])
@pytest.mark.filterwarnings("error")  # text that is too small
def test_no_box_covers_another_and_nothing_is_scaled(width: float) -> None:
    svg = svg_of([CHART], width=width)
    assert view_of(svg)[0] == within(width * 96 / 25.4, 1)
    for box, other in combinations(boxes(svg), 2):
        apart = box.right < other.left or other.right < box.left
        assert apart or box.bottom < other.top or other.bottom < box.top, (box, other)


def test_the_steps_are_numbered_in_both_layouts() -> None:
    assert "step 2" in texts(svg_of([CHART], width=PAGE))
    assert {"step", "1", "2", "3"} <= set(texts(svg_of([CHART], width=COLUMN)))
