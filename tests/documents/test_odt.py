"""OpenDocument files keep their structure; odfpy makes and reads them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from docutils.writers import odf_odt
from odf import office, opendocument, style, teletype, text
from tests.documents.archives import archive, members_of, reverse_document, texts_of

from manyheads.errors import DataError

MIME = "application/vnd.oasis.opendocument.text"


def content(body: str, styles: str = "", **others: str) -> bytes:
    spaces = " ".join(f'xmlns:{name}="{name}"' for name in ("office", "text", "style", "svg", "draw", "officeooo"))
    xml = f"<office:document {spaces}>{styles}<office:text>{body}</office:text></office:document>"
    return archive({"mimetype": MIME, "content.xml": xml} | others)


def made() -> bytes:
    document = opendocument.OpenDocumentText()
    bold = style.Style(name="Bold", family="text")
    bold.addElement(style.TextProperties(fontweight="bold", language="en", country="US"))
    document.automaticstyles.addElement(bold)
    document.text.addElement(text.H(outlinelevel=1, text="The red house"))
    paragraph = text.P(text="A ")
    paragraph.addElement(text.Span(stylename=bold, text="small"))
    paragraph.addText(" dog barks")
    note = text.Note(noteclass="footnote")
    note.addElement(text.NoteCitation(text="1"))
    body = text.NoteBody()
    body.addElement(text.P(text="a note"))
    note.addElement(body)
    paragraph.addElement(note)
    annotation = office.Annotation()
    annotation.addElement(text.P(text="a remark"))
    paragraph.addElement(annotation)
    document.text.addElement(paragraph)
    output = io.BytesIO()
    document.save(output)
    return output.getvalue()


def test_headings_spans_notes_and_annotations_are_translated() -> None:
    assert texts_of(made(), "odt") == ["a note", "a remark", "The red house", "A small dog barks"]
    written = opendocument.load(io.BytesIO(reverse_document(made(), "odt")))
    assert [teletype.extractText(heading) for heading in written.getElementsByType(text.H)] == ["house red The"]
    paragraphs = [teletype.extractText(paragraph) for paragraph in written.getElementsByType(text.P)]
    assert paragraphs == ["barks dog small A1note aremark a", "note a", "remark a"]
    assert [teletype.extractText(span) for span in written.getElementsByType(text.Span)] == ["small"]


@pytest.mark.parametrize(("target", "language", "country"), [("pt_BR", "pt", "BR"), ("deu_Latn", "de", "none")])
def test_language_and_country_become_those_of_the_target(target: str, language: str, country: str) -> None:
    written = members_of(reverse_document(made(), "odt", target=target))["content.xml"]
    assert f'fo:language="{language}" fo:country="{country}"' in written


def test_headers_and_alternative_texts_are_translated_and_deleted_text_is_not() -> None:
    deleted = (
        "<text:tracked-changes><text:deletion><text:p>deleted text</text:p></text:deletion></text:tracked-changes>"
    )
    frame = "<text:p><draw:frame><svg:title>a dog</svg:title><svg:desc>a red dog</svg:desc></draw:frame></text:p>"
    header = {"styles.xml": '<style:header xmlns:style="s" xmlns:text="t"><text:p>a header</text:p></style:header>'}
    data = content(deleted + frame, **header)
    assert texts_of(data, "odt") == ["a dog", "a red dog", "a header"]
    assert "deleted text" in members_of(reverse_document(data, "odt"))["content.xml"]


def test_spans_that_only_mark_a_revision_divide_no_word() -> None:
    styles = ('<style:style style:name="T1" style:family="text">'
              '<style:text-properties officeooo:rsid="00a"/></style:style>')  # fmt: skip
    data = content('<text:p>Ho<text:span text:style-name="T1">use</text:span> red</text:p>', styles)
    assert "<text:p>red House</text:p>" in members_of(reverse_document(data, "odt"))["content.xml"]


def test_spans_in_spans_are_read_to_a_depth() -> None:
    styles = '<style:style style:name="T1" style:family="text"><style:text-properties/></style:style>'
    for span in ('<text:span text:style-name="T1">', "<text:span>"):
        data = content(f"<text:p>one two {span * 5_000}three{'</text:span>' * 5_000}</text:p>", styles)
        assert texts_of(data, "odt") == ["one two"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (content("", **{"META-INF/manifest.xml": "<a><manifest:encryption-data/></a>"}), "encrypted"),
        (archive({"mimetype": MIME}), r"no content\.xml"),
    ],
)
def test_an_encrypted_or_another_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        texts_of(data, "odt")


def test_a_real_file_stays_as_it_is() -> None:
    reverse_document((Path(odf_odt.__file__).parent / "styles.odt").read_bytes(), "odt")
