"""A picture has the requested width, with its text inside and large enough to read."""

from __future__ import annotations

import warnings

import pytest
from tests.tolerances import within
from tests.views.svg.drawing import marks, size_of, texts, view_of
from tests.views.test_png import CHARTS

from manyheads.views.charts import Table
from manyheads.views.svg import PIXELS_PER_MM, svg_of


@pytest.mark.parametrize("width", [None, 77.0, 160.0])
@pytest.mark.parametrize("kind", sorted(CHARTS))
def test_every_text_and_box_is_inside_the_view_box(kind: str, width: float | None) -> None:
    svg = svg_of([CHARTS[kind], CHARTS[kind]], width=width)
    wide, high = view_of(svg)
    for mark in marks(svg):
        assert mark.left >= -0.5, mark
        assert mark.top >= -0.5, mark
        assert mark.right <= wide + 0.5, mark
        assert mark.bottom <= high + 0.5, mark


@pytest.mark.parametrize("width", [77.0, 160.0])
@pytest.mark.parametrize("kind", sorted(CHARTS))
def test_the_width_is_in_millimetres_and_the_picture_is_laid_out_for_it_without_a_title(
    kind: str, width: float
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # text that is too small
        svg = svg_of([CHARTS[kind]], width=width)
    written, high = size_of(svg)
    assert written == f"{width:g}mm"
    assert CHARTS[kind].title in texts(svg_of([CHARTS[kind]]))
    assert CHARTS[kind].title not in texts(svg)
    view = view_of(svg)
    assert view[0] == within(width * PIXELS_PER_MM, 1), "not scaled"
    assert float(high.removesuffix("mm")) / width == within(view[1] / view[0], 0.01 * view[1] / view[0])


def test_a_picture_that_is_too_wide_is_scaled_down_and_small_text_is_reported() -> None:
    wide = Table("title", "", tuple(f"column {number}" for number in range(30)), (tuple(range(30)),))
    with pytest.warns(UserWarning, match=r"smallest text is 1\.\d pt at a width of 77 mm; .* Use \d\d\d mm"):
        svg = svg_of([wide], width=77.0)
    assert size_of(svg)[0] == "77mm"
    assert view_of(svg)[0] > 77 * PIXELS_PER_MM
