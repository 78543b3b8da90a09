"""A paragraph of an office document is one text, and its translation keeps what is not text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.documents.archives import reverse_words, shout

from manyheads.documents.runs import alternative_texts, paragraph_readers
from manyheads.documents.units import Part, Translated

BOLD, SPACE = "<w:rPr><w:b/></w:rPr>", ' xml:space="preserve"'


def part_of(source: str, names: str = "p") -> Part:
    return Part(source, [alternative_texts, *paragraph_readers(source, set(names.split()))])


def texts_of(source: str) -> list[str]:
    return [unit.text for unit in part_of(source).units]


def reverse(source: str) -> str:
    part = part_of(source)
    assert part.write(Translated(unit.text) for unit in part.units) == source
    return part.write(map(reverse_words, part.units))


def run(text: str, properties: str = "", space: str = SPACE) -> str:
    return f"<w:r>{properties}<w:t{space}>{text}</w:t></w:r>"


def paragraph(*runs: str) -> str:
    return f"<w:p><w:pPr/>{''.join(runs)}</w:p>"


def field(code: str, result: str) -> str:
    kinds = ["begin", "separate", "end"]
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in kinds)
    return f"{begin}<w:r><w:instrText>{code}</w:instrText></w:r>{separate}{result}{end}"


IMAGE = '<w:r><w:drawing><wp:docPr id="1"/></w:drawing></w:r>'
NOTE = '<w:r><w:footnoteReference w:id="2"/></w:r>'


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        # a word over three runs, between hints of Word
        ([run("Hu"), '<w:proofErr w:type="spellStart"/>', '<w:r w:rsidR="00A1"><w:t>nd</w:t></w:r>',
          "<w:r><w:lastRenderedPageBreak/><w:t>e</w:t></w:r>", run(" da")], "Hunde da"),
        ([run("Hu"), '<w:bookmarkStart w:id="0" w:name="a"/>', run("nd")], "Hund"),
        ([run("ein "), run("Hu", BOLD), run("nd")], "ein Hund"),
        ([run("eins"), "<w:r><w:br/></w:r>", run("zwei")], "eins zwei"),
        (["<w:r><w:t>eins</w:t><w:tab/><w:t>zwei</w:t></w:r>"], "eins zwei"),
        ([run(" eins ", space="")], "eins"),
        ([run("E"), "<w:r><w:t>-</w:t><w:noBreakHyphen/></w:r>", run("Mail")], "E-‑Mail"),
        ([run("vor "), "<w:del><w:r><w:delText>nicht </w:delText></w:r></w:del>", run("nach")], "vor nach"),
        ([run("Seite "), field("PAGE", run("3")), run(" von vier")], "Seite von vier"),
        ([run("Seite "), f"<w:fldSimple>{run('3')}</w:fldSimple>", run(" von vier")], "Seite von vier"),
        ([run("sieh "), field(' HYPERLINK "x"', run("hier", BOLD)), run(" nach")], "sieh hier nach"),
        ([run("sieh "), f'<w:hyperlink r:id="1">{run("hier")}</w:hyperlink>'], "sieh hier"),
        ([f'<w:ins w:id="1">{run("neu")}</w:ins>', run(" da")], "neu da"),
        ([f"<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent>{run('Feld')}</w:sdtContent></w:sdt>"], "Feld"),
        ([run("ist "), "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", run(" da")], "ist da"),
        ([run("a &lt; b &amp; c")], "a < b & c"),
    ],
)  # fmt: skip
def test_the_runs_of_a_paragraph_are_one_text(runs: list[str], text: str) -> None:
    assert texts_of(paragraph(*runs)) == [text]


@pytest.mark.parametrize(
    ("runs", "result"),
    [
        ([run("Ein "), run("roter ", BOLD), run("Hund")], [run("Hund "), run("roter ", BOLD), run("Ein")]),
        # the run with most letters is that of the paragraph; equal ones are one
        ([run("Gute", BOLD), run(" alte "), run("Zeit")], [run("Zeit alte "), run("Gute", BOLD)]),
        ([run("sieh "), f"<w:hyperlink>{run('hier')}</w:hyperlink>"],
         [f"<w:hyperlink>{run('hier')}</w:hyperlink>", run(" sieh")]),
        ([run("sieh "), field("HYPERLINK", run("hier"))], [field("HYPERLINK", run("hier")), run(" sieh")]),
        ([run("  eins zwei ")], [run("  "), run("zwei eins"), run(" ")]),
        ([run("zwei &lt; eins")], [run("eins &lt; zwei")]),
        ([IMAGE, run("Bild hier"), NOTE], [IMAGE, run("hier Bild"), NOTE]),
    ],
)  # fmt: skip
def test_runs_go_with_their_words(runs: list[str], result: list[str]) -> None:
    assert reverse(paragraph(*runs)) == paragraph(*result)


@pytest.mark.parametrize(
    "runs",
    [
        ["eins ", IMAGE, "zwei"],
        ["eins", NOTE, ". zwei"],
        ["eins", "<w:r><w:br/></w:r>", "zwei"],
        ["eins", "<w:r><w:br/></w:r>", " zwei"],
        ["eins", "<w:r><w:tab/></w:r>", '<w:bookmarkEnd w:id="0"/>', "<w:r><w:tab/></w:r>", "zwei"],
        ["Seite ", field("PAGE", run("3")), " von ", field("NUMPAGES", run("4")), " hier"],
        ["eins", "<w:sdt><w:sdtContent>", " zwei", "</w:sdtContent></w:sdt>"],
    ],
)
def test_what_stands_between_runs_keeps_its_place_and_its_blanks(runs: list[str]) -> None:
    part = part_of(paragraph(*(piece if "<" in piece else run(piece) for piece in runs)))
    written = part.write(map(shout, part.units))
    assert joined(written) == joined(paragraph(*(piece if "<" in piece else run(piece.upper()) for piece in runs)))


def joined(source: str) -> str:
    return source.replace(f"</w:t></w:r><w:r><w:t{SPACE}>", "")


def test_a_run_takes_its_appearance_and_not_its_revision_or_spelling() -> None:
    first = '<a:r><a:rPr lang="en-US" dirty="0"/><a:t>{}</a:t></a:r>'
    second = '<a:r><a:rPr lang="en-US" err="1"/><a:t>{}</a:t></a:r>'
    source = f"<a:p>{first.format('eins ')}{second.format('zwei')}<a:endParaRPr/></a:p>"
    assert reverse(source) == f"<a:p>{first.format('zwei eins')}<a:endParaRPr/></a:p>"


def test_text_boxes_and_alternative_texts_in_a_paragraph_are_texts_of_their_own() -> None:
    box = "<w:r><w:drawing><wp:docPr descr='{}' title=\"a.png\"/><wps:txbx>{}</wps:txbx></w:drawing></w:r>"
    source = paragraph(run("oben unten"), box.format("ein Bild", paragraph(run("im Kasten"))), run(" da"))
    assert texts_of(source) == ["ein Bild", "im Kasten", "oben unten da"]
    box = box.format("EIN BILD", paragraph(run("IM KASTEN")))
    part = part_of(source)
    assert part.write(map(shout, part.units)) == paragraph(run("OBEN UNTEN"), box, run(" DA"))


@pytest.mark.parametrize(
    ("source", "text", "result"),
    [
        ("ein <text:span text:style-name='T1'>roter</text:span> Hund", "ein roter Hund",
         "Hund <text:span text:style-name='T1'>roter</text:span> ein"),
        ("<!-- x -->\n ein\n  Hund ", "ein Hund", "<!-- x -->\n Hund ein "),
    ],
)  # fmt: skip
def test_text_with_inline_tags_is_read_as_one_text(source: str, text: str | None, result: str) -> None:
    assert text is None or texts_of(f"<p>{source}</p>") == [text]
    assert reverse(f"<p>{source}</p>") == f"<p>{result}</p>"


@pytest.mark.parametrize(
    "source",
    [
        "die eins<text:s text:c='3'/>zwei",
        "die eins<text:tab/>zwei <text:bookmark/>drei",
        "die Seite <text:page-number>3</text:page-number> oben",
        "das Wort<text:note><text:note-body><p>die Note</p></text:note-body></text:note> da",
        "das <text:ruby><text:ruby-base>wort</text:ruby-base><text:ruby-text>3</text:ruby-text></text:ruby> da",
    ],
)
def test_what_stands_in_a_text_keeps_its_place_and_its_blanks(source: str) -> None:
    part = part_of(f"<p>{source}</p>")
    expected = re.sub("<[^<>]*>|[^<>]+", lambda match: match[0] if match[0][0] == "<" else match[0].upper(), source)
    assert part.write(map(shout, part.units)) == f"<p>{expected}</p>"


PIECES = st.recursive(
    st.sampled_from([run("eins"), run(" zwei"), run("drei ", BOLD), run("&amp;"), run(" "), NOTE,
                     "<w:r><w:br/></w:r>", "<w:r><w:tab/><w:t>vier</w:t></w:r>",
                     '<w:bookmarkEnd w:id="0"/>', field("PAGE", run("5")),
                     '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
                     "<w:r/>", "<w:r><w:rPr/></w:r>", "<!-- c -->", "\n"]),
    lambda inner: st.lists(inner, max_size=4).map("".join).flatmap(
        lambda text: st.sampled_from([f"<w:hyperlink>{text}</w:hyperlink>", f"<w:ins>{text}</w:ins>",
                                      f"<w:sdt><w:sdtPr/><w:sdtContent>{text}</w:sdtContent></w:sdt>",
                                      field("HYPERLINK", text)])),
    max_leaves=8,
)  # fmt: skip


def structure(source: str) -> tuple[list[str], list[str]]:
    """Return the names of the elements of a paragraph but for runs, and the letters in its texts, both sorted."""
    root = ElementTree.fromstring(f"<x xmlns:w='w' xmlns:m='m'>{source}</x>")
    for run in root.iter("{w}r"):
        assert all(not (child.tail or "").strip() for child in run)
    names = [element.tag for element in root.iter() if element.tag not in ("{w}r", "{w}t", "{w}rPr", "{w}b")]
    texts = [element.text or "" for element in root.iter("{w}t")]
    assert "".join(texts).split() == [] or "".join("".join(root.itertext()).split()) == re.sub(
        r"\s", "", "".join(text for element in root.iter() if element.tag[3:] in ("t", "instrText")
                           for text in element.itertext()))  # fmt: skip
    return sorted(names), sorted("".join("".join(texts).split()))


@settings(max_examples=100)
@given(st.lists(PIECES, max_size=8))
@example([run("eins"), "<w:r><w:br/></w:r>", "<w:ins>" + run("zwei drei") + "</w:ins>", run("vier", BOLD)])
def test_every_element_but_runs_stays_and_every_letter_stands_in_a_run(pieces: list[str]) -> None:
    source = paragraph(*pieces)
    assert structure(reverse(source)) == structure(source)


@pytest.mark.parametrize(
    "piece",
    ["<w:ins>", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', "<w:p>", "<w:r><w:t>a</w:t></w:r>", "<w:sdt>",
     field("HYPERLINK", ""), "<text:span>", "<w:r><w:br/></w:r>"],
)  # fmt: skip
def test_a_paragraph_of_many_elements_is_processed_fast(piece: str) -> None:
    count = 2_000
    end = re.sub("<", "</", piece) if re.fullmatch("<[^<>]*>", piece) else ""
    reverse(paragraph(piece * count, run("eins zwei"), end * count))
