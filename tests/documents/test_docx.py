"""Word documents keep their structure; python-docx makes and reads them."""

from __future__ import annotations

import io
from pathlib import Path

import docx
import pytest
from tests.documents.archives import archive, members_of, reverse_document, shout, texts_of

from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.errors import DataError

NAMESPACES = 'xmlns:w="w" xmlns:a="a" xmlns:wp="wp" xmlns:v="v"'


def word(body: str, **others: str) -> bytes:
    texts = {"document": body} | others
    return archive(
        {f"word/{name}.xml": f"<w:{name} {NAMESPACES}>{text}</w:{name}>" for name, text in texts.items()}
    )


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def made() -> bytes:
    """Return a document of python-docx, whose template is a real file of Word."""
    document = docx.Document()
    document.add_heading("The red house", 1)
    mixed = document.add_paragraph("A ", style="List Bullet")
    mixed.add_run("small").bold = True
    mixed.add_run(" dog barks")
    mixed.add_run().add_break()
    table = document.add_table(2, 2)
    for index, text in enumerate(["one two", "three", "four", "five six"]):
        table.cell(index // 2, index % 2).text = text
    document.sections[0].header.paragraphs[0].text = "Head of page"
    document.add_comment(mixed.runs, "a comment here")
    output = io.BytesIO()
    document.save(output)
    return output.getvalue()


def test_paragraphs_tables_headers_and_comments_are_translated_and_keep_their_styles() -> None:
    before, after = (docx.Document(io.BytesIO(data)) for data in (made(), reverse_document(made(), "docx")))
    assert [text.text for text in after.paragraphs] == ["house red The", "barks dog small A\n"]
    assert [text.style.name for text in after.paragraphs] == [text.style.name for text in before.paragraphs]
    assert [run.text for run in after.paragraphs[1].runs if run.bold] == ["small"]
    assert [cell.text for row in after.tables[0].rows for cell in row.cells] == [
        "two one",
        "three",
        "four",
        "six five",
    ]
    assert after.sections[0].header.paragraphs[0].text == "page of Head"
    assert [comment.text for comment in after.comments] == ["here comment a"]


def test_notes_and_text_boxes_are_read_in_their_order() -> None:
    box = f"<w:p><w:r><w:pict><v:textbox>{paragraph('a box')}</v:textbox></w:pict></w:r></w:p>"
    data = word(box + paragraph("the text"), footnotes=paragraph("a note"), endnotes=paragraph("an end"),
                footer1=paragraph("a foot"), styles="", settings="")  # fmt: skip
    assert texts_of(data, "docx") == ["a box", "the text", "a foot", "a note", "an end"]


def test_the_language_of_the_source_becomes_that_of_the_target() -> None:
    language = '<w:lang w:val="{}" w:eastAsia="ja-JP"/>'
    data = word(paragraph("one two"), styles=language.format("en-US"))
    assert language.format("pt-BR") in members_of(reverse_document(data, "docx", target="pt_BR"))["word/styles.xml"]


def test_bilingual_text_stands_on_two_lines() -> None:
    document = read_document(word(paragraph("one two")), "docx", ReadOptions())
    written = members_of(document.write(map(shout, document.units), bilingual=True))["word/document.xml"]
    both = '<w:r><w:t>one two</w:t></w:r><w:r><w:br/></w:r><w:r><w:t xml:space="preserve">ONE TWO</w:t></w:r>'
    assert both in written


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive({"xl/workbook.xml": "<x/>"}), "no docx file"),
        (word("<w:p>").replace(b"PK\x01\x02", b"PK\x01\x03"), "damaged"),
        (archive({"word/document.xml": "<w:p>"}), "no well-formed XML"),
    ],
)
def test_another_or_a_damaged_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        texts_of(data, "docx")


@pytest.mark.parametrize("path", sorted((Path(docx.__file__).parent / "templates").glob("*.docx")))
def test_real_files_stay_as_they_are(path: Path) -> None:
    reverse_document(path.read_bytes(), "docx")
