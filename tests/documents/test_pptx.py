"""Presentations keep their structure; python-pptx makes and reads them."""

from __future__ import annotations

import io
from pathlib import Path

import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from tests.documents.archives import archive, members_of, reverse_document, texts_of

from manyheads.errors import DataError

SIZE = [Inches(1)] * 4


def made() -> bytes:
    """Return a presentation of python-pptx with its second slide first; its template is a real file."""
    presentation = pptx.Presentation()
    first, second = (presentation.slides.add_slide(presentation.slide_layouts[5]) for _ in range(2))
    first.shapes.title.text = "A red house"
    first.notes_slide.notes_text_frame.text = "the first note"
    first.shapes.add_table(1, 2, *SIZE).table.cell(0, 1).text = "in a table"
    data = CategoryChartData()
    data.categories = ["left alone"]
    data.add_series("Series", [1])
    chart = first.shapes.add_chart(XL_CHART_TYPE.PIE, *SIZE, data).chart
    chart.chart_title.text_frame.text = "a chart title"
    second.shapes.title.text_frame.text = "one two\vthree"
    box = second.shapes.add_textbox(*SIZE)
    box.name = "not translated"
    box._element.nvSpPr.cNvPr.set("descr", 'A picture "of" a dog')
    run = box.text_frame.paragraphs[0].add_run()
    run.text, run.font.bold, run.font.language_id = "bold text", True, pptx.enum.lang.MSO_LANGUAGE_ID.ENGLISH_US
    slides = presentation.slides._sldIdLst
    slides.insert(0, slides[1])
    output = io.BytesIO()
    presentation.save(output)
    return output.getvalue()


def test_slides_are_read_in_their_order_with_notes_tables_and_charts() -> None:
    assert texts_of(made(), "pptx") == [
        'A picture "of" a dog', "one two three", "bold text",
        "A red house", "in a table", "a chart title", "the first note",
    ]  # fmt: skip


def test_a_presentation_keeps_its_structure() -> None:
    written = reverse_document(made(), "pptx")
    second, first = pptx.Presentation(io.BytesIO(written)).slides
    assert first.shapes.title.text == "house red A"
    assert first.notes_slide.notes_text_frame.text == "note first the"
    chart = next(shape.chart for shape in first.shapes if shape.has_chart)
    assert (chart.chart_title.text_frame.text, list(chart.plots[0].categories)) == ("title chart a", ["left alone"])
    box = second.shapes[-1]
    assert (box.name, box._element.nvSpPr.cNvPr.get("descr")) == ("not translated", 'dog a "of" picture A')
    assert [(run.text, run.font.bold) for run in box.text_frame.paragraphs[0].runs] == [("text bold", True)]
    slide = next(text for text in members_of(written).values() if "text bold" in text)
    assert 'lang="de"' in slide
    assert "xml:space" not in slide  # DrawingML knows no such attribute


def test_comments_are_translated() -> None:
    text = '<p:cm xmlns:p="p"><p:text>one two</p:text></p:cm>'
    relation = '<Relationships><Relationship Id="r1" Target="{}"/></Relationships>'
    data = archive(
        {
            "ppt/presentation.xml": "<p/>",
            "ppt/_rels/presentation.xml.rels": relation.format("slides/slide1.xml"),
            "ppt/slides/slide1.xml": "<p/>",
            "ppt/slides/_rels/slide1.xml.rels": relation.format("../comments/comment1.xml"),
            "ppt/comments/comment1.xml": text,
        }
    )
    written = members_of(reverse_document(data, "pptx"))
    assert written["ppt/comments/comment1.xml"] == text.replace("one two", "two one")


def test_another_file_is_refused() -> None:
    with pytest.raises(DataError, match=r"no ppt/presentation\.xml"):
        texts_of(archive({"word/document.xml": "<p/>"}), "pptx")


@pytest.mark.parametrize("path", sorted((Path(pptx.__file__).parent / "templates").glob("*.pptx")))
def test_real_files_stay_as_they_are(path: Path) -> None:
    reverse_document(path.read_bytes(), "pptx")
