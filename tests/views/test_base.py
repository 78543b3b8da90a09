"""Every format shows the same values, and text of a user is never interpreted as markup or control codes."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from tests.tolerances import printed
from tests.views.svg.drawing import texts

from manyheads.errors import UsageError
from manyheads.views.base import _FORMATS
from manyheads.views.charts import Axis, HeatMap, Table, shown, tick_text, ticks, visible
from manyheads.views.colours import ink_on, shade
from manyheads.views.documents import Inspection, TranslationInspection
from manyheads.views.lines import chart_lines, csv_of
from manyheads.views.picture import Picture

HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m\u202e]]>"
SVG = "{http://www.w3.org/2000/svg}"
# Linear RGB under colour blindness: Machado, Oliveira and Fernandes (2009), severity 1.
COLOUR_VISION = {
    "trichromacy": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip


def views(inspections: list[Inspection]) -> list[tuple[Inspection, str]]:
    return [(inspection, view) for inspection in inspections for view in inspection.views]


def test_every_view_is_a_complete_svg_without_external_resources(all_inspections: list[Inspection]) -> None:
    for inspection, view in views(all_inspections):
        text = inspection.render(Picture(view), "svg").decode()
        root = ElementTree.fromstring(text)
        assert root.tag == f"{SVG}svg"
        assert not re.search(r"href|url\(|<script|<style|@import|<image|<foreign", text), view
        assert re.findall(r"https?://[^\"' ]*", text) == ["http://www.w3.org/2000/svg"]
        assert 0 < float(root.get("width", "0")) < 10_000
        assert all(float(mark.get("x", "0")) >= 0 for mark in root.iter(f"{SVG}text"))


def test_axes_of_attention_and_alignment_are_named_by_side_and_language(found: TranslationInspection) -> None:
    assert (found.source.language, found.target.language) == ("de", "en")
    for view, names in {
        "alignment": {"source (German)", "target (English)"},
        "attention": {"target (English), query", "source (German), key"},
        "heads": {"target (English), query", "source (German), key"},
    }.items():
        shown = ", ".join(texts(found.render(Picture(view), "svg")))  # the title of few rows takes two lines
        assert all(name in shown for name in names), view
        assert all(name in "\n".join(found.lines(Picture(view))) for name in names) or view == "heads"
    chart = found.charts(Picture("attention", "encoder"))[0]
    assert (chart.rows.title, chart.columns.title) == ("source (German), query", "source (German), key")  # type: ignore[union-attr]


def test_signed_values_have_a_scale_about_zero(all_inspections: list[Inspection]) -> None:
    for inspection, view in ((all_inspections[0], "occlusion"), (all_inspections[3], "positions")):
        maps = [chart for chart in inspection.charts(Picture(view)) if isinstance(chart, HeatMap)]
        assert maps
        for chart in maps:
            assert chart.signed
            assert chart.low == -chart.high
            assert chart.high == pytest.approx(np.abs(chart.values).max())


def test_the_heat_map_holds_every_weight_and_every_token(found: TranslationInspection) -> None:
    root = ElementTree.fromstring(found.render(Picture("attention", "cross", 0, 1), "svg"))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    weights = found.attention[2].weights[0, 1]
    assert len(titles) == weights.size
    values = [float(title.rpartition(": ")[2].removesuffix(" (masked)")) for title in titles]
    assert values == printed(weights.flatten(), 4)
    shown = {mark.text for mark in root.iter(f"{SVG}text")}
    assert {piece.replace("▁", "␣") for piece in (*found.source.pieces, *found.target.pieces)} <= shown


def test_csv_holds_the_values_of_the_json(found: TranslationInspection) -> None:
    rows = list(csv.reader(io.StringIO(found.render(Picture("attention", "cross", 0), "csv").decode())))
    assert [row[0] for row in rows[1:]] == found.target.pieces
    expected = np.array(found.to_dict()["attention"][2]["weights"][0]).mean(0)
    assert np.array([row[1:] for row in rows[1:]], float) == printed(expected, 6)
    probabilities = list(csv.DictReader(io.StringIO(found.render(Picture("probabilities"), "csv").decode())))
    assert [float(row["probability"]) for row in probabilities] == printed(
        [prediction.probability for prediction in found.predictions], 6
    )


def test_hostile_text_is_shown_and_not_interpreted(all_inspections: list[Inspection]) -> None:
    rows, columns = Axis(HOSTILE, [HOSTILE]), Axis("x", [HOSTILE])
    chart = HeatMap(HOSTILE, HOSTILE, rows, columns, np.ones((1, 1), np.float32))

    class Hostile(type(all_inspections[3])):  # type: ignore[misc]
        def view_functions(self) -> dict[str, Any]:
            return {"one": lambda _: [chart, chart.data]}

    inspection = object.__new__(Hostile)
    svg, table = (inspection.render(Picture(), form).decode() for form in ("svg", "csv"))
    for text in (svg, "\n".join(inspection.lines())):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert not [mark for mark in ElementTree.fromstring(svg).iter() if "script" in mark.tag]
    assert "<script>alert(1)</script>" in ", ".join(texts(svg))
    assert table.startswith('"' + HOSTILE.replace('"', '""'))


def test_a_cell_that_a_spreadsheet_would_compute_is_escaped() -> None:
    chart = HeatMap("", "", Axis("r", ["=1+1"]), Axis("c", ["-"]), np.ones((1, 1), np.float32))
    assert csv_of([chart]) == "r \\ c,-\r\n'=1+1,1.0\r\n"


def test_control_characters_become_visible_symbols() -> None:
    assert visible("a\nb\tc\x00\u2028\u202ed가\u0301") == "a↵b⇥c\ufffd\ufffd\ufffdd가\u0301"
    assert visible("\ufffe\uffff") == "\ufffd\ufffd"
    assert [shown(value) for value in (None, 3, 1234567, 0.123456, "a\n")] == ["", "3", "1,234,567", "0.1235", "a↵"]


# --- in a terminal ---


@pytest.mark.parametrize("width", [40, 80, 160])
def test_rows_of_a_heat_map_are_aligned(found: TranslationInspection, width: int) -> None:
    lines = found.lines(Picture("attention"), width)
    rows = [line for line in lines if "│" in line]
    assert len({cell_len(line.partition("│")[0]) for line in rows}) == 1
    assert len(rows) % len(found.target.tokens) == 0
    assert max(map(cell_len, lines)) <= max(width, 90)
    assert not any("\x1b" in line for line in lines)


def test_a_large_map_names_its_sampling_and_a_map_with_names_is_complete() -> None:
    values = np.zeros((70, 90), np.float32)
    indices = [str(index) for index in range(90)]
    plain = HeatMap("t", "", Axis("", indices[:70]), Axis(""), values)
    assert chart_lines(plain, 80)[3] == "Shown: one row in 2, one column in 4."
    named = HeatMap("t", "", Axis("", indices[:70]), Axis("", indices), values)
    rows = [line for line in chart_lines(named, 80) if "│" in line]
    assert len(rows) == 3 * 70


def test_a_table_is_cut_to_the_width_and_no_further_than_needed() -> None:
    table = Table("t", "", ("a", "b"), (("x" * 90, 1), ("y", 2)))
    assert max(map(cell_len, chart_lines(table, 60))) <= 60
    assert any("x" * 90 in line for line in chart_lines(table, 100))


def test_every_view_can_be_printed(all_inspections: list[Inspection]) -> None:
    for inspection, view in views(all_inspections):
        lines = inspection.lines(Picture(view))
        assert len(lines) > 3
        assert all("\n" not in line for line in lines)


def test_the_tree_in_a_terminal_has_every_node_once_with_its_reason(found: TranslationInspection) -> None:
    assert found.beam is not None
    lines = [line for line in found.lines(Picture("beam")) if re.search("[├└]─", line)]
    assert len(lines) == len(found.beam.nodes)
    assert sum("finished: score" in line for line in lines) == sum(
        node.state == "finished" for node in found.beam.nodes
    )
    assert sum("●" in line for line in lines) == len(found.target.tokens)


# --- selection of views ---


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (Picture("heat"), 'no view "heat" here. Use one of probabilities'),
        (Picture("attention", "self"), 'no attention of kind "self"'),
        (Picture("attention", "cross", 2), "no layer 2: layers are 0 to 1"),
        (Picture("attention", "cross", -3), "no layer -3"),
        (Picture("attention", "cross", 0, 2), "no head 2: heads are 0 to 1"),
    ],
)
def test_a_view_kind_layer_or_head_that_does_not_exist_is_refused(
    found: TranslationInspection, picture: Picture, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        found.charts(picture)


def test_an_unknown_format_is_refused(found: TranslationInspection) -> None:
    with pytest.raises(UsageError, match=r'no format "gif"\. Use one of svg, png, json, csv'):
        found.render(Picture(), "gif")


@pytest.mark.filterwarnings("ignore:no font here has")
@pytest.mark.parametrize("name", _FORMATS)
def test_every_format_is_bytes(found: TranslationInspection, name: str) -> None:
    if name == "png":
        pytest.importorskip("resvg_py")
    beginning = {
        "svg": b"<svg ",
        "png": b"\x89PNG\r\n",
        "json": b'{"format"',
        "csv": b"tok",
    }
    assert found.render(Picture(), name).startswith(beginning[name])


def test_a_notebook_shows_the_first_view_of_every_inspection(all_inspections: list[Inspection]) -> None:
    for inspection in all_inspections:
        assert inspection._repr_svg_().encode() == inspection.render(Picture(inspection.views[0]), "svg")


# --- colours and numbers ---


@pytest.mark.parametrize("sight", sorted(COLOUR_VISION))
def test_shades_can_be_distinguished_under_colour_blindness(sight: str) -> None:
    """Expect that eleven shades grow lighter by 3 L* of CIE 1976 or more each, for each kind of colour vision."""
    light = []
    for step in range(11):
        parts = np.array(shade(step / 10)) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        luminance = float(
            np.array([0.2126, 0.7152, 0.0722]) @ np.clip(np.array(COLOUR_VISION[sight]) @ linear, 0, 1)
        )
        light.append(116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance)
    assert np.diff(light).min() >= 3


def test_numbers_can_be_read_on_every_shade() -> None:
    """Require the contrast of WCAG 2: 4.5 to 1."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for share in np.linspace(0, 1, 101):
        ground = luminance(shade(float(share)))
        ink = luminance((0, 0, 0) if ink_on(shade(float(share))) == "#000000" else (255, 255, 255))
        assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5


def test_ticks_are_round_numbers_inside_the_range() -> None:
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(3, 47) == [10, 20, 30, 40]
    assert ticks(5, 5) == [5]
    assert [tick_text(value) for value in (20_000, 6_989, 0.005, 0.30000000000000004)] == [
        "20k",
        "6,989",
        "0.005",
        "0.3",
    ]
