"""Books are read in the order of reading, with their navigation and titles."""

from __future__ import annotations

import io
from zipfile import ZIP_STORED, ZipFile

import pytest
from tests.documents.archives import archive, members_of, reverse_document, texts_of

from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.errors import DataError

CHAPTER = '<?xml version="1.0"?>\n<html xmlns="h" xml:lang="en" lang="en-GB"><body><p>{}</p></body></html>'
PACKAGE = """<package xmlns:dc="dc"><metadata><dc:title>The book</dc:title><dc:language>en</dc:language>
<dc:creator>Some One</dc:creator></metadata><manifest>
<item id="b" href="text/b%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" properties="nav" href="nav.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>
<item id="css" href="s.css" media-type="text/css"/>
<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
</manifest><spine toc="ncx"><itemref idref="b"/><itemref idref="a"/></spine></package>"""


def book(**others: str) -> bytes:
    return archive({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<c><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></c>',
        "OPS/p.opf": PACKAGE,
        "OPS/text/a.xhtml": CHAPTER.format("second <b>chapter</b> &amp; end"),
        "OPS/text/b b.xhtml": CHAPTER.format('first chapter <q lang="fr">xyz</q>'),
        "OPS/nav.xhtml": CHAPTER.format("the contents"),
        "OPS/toc.ncx": '<ncx xmlns="n"><navLabel><text>a label</text></navLabel></ncx>',
        "OPS/s.css": "p { color: red }",
    } | {name.replace("__", "/"): text for name, text in others.items()})  # fmt: skip


def test_chapters_are_read_in_the_order_of_reading() -> None:
    assert texts_of(book(), "epub") == [
        "first chapter xyz", "second chapter & end", "the contents", "a label", "The book",
    ]  # fmt: skip


def test_a_book_keeps_its_structure_and_takes_the_language_of_the_target() -> None:
    written = members_of(reverse_document(book(), "epub"))
    chapter = CHAPTER.replace('"en"', '"de"').replace('"en-GB"', '"de"')
    assert written["OPS/text/a.xhtml"] == chapter.format("end &amp; <b>chapter</b> second")
    assert written["OPS/text/b b.xhtml"] == chapter.format('<q lang="fr">xyz</q> chapter first')
    assert written["OPS/toc.ncx"] == members_of(book())["OPS/toc.ncx"].replace("a label", "label a")
    assert written["OPS/p.opf"] == PACKAGE.replace("The book", "book The").replace(">en<", ">de<")
    assert written["OPS/s.css"] == members_of(book())["OPS/s.css"]


def test_the_media_type_stays_first_and_unpacked() -> None:
    with ZipFile(io.BytesIO(reverse_document(book(), "epub"))) as file:
        first = file.infolist()[0]
    assert (first.filename, first.compress_type, first.header_offset) == ("mimetype", ZIP_STORED, 0)


def encryption(algorithm: str) -> dict[str, str]:
    return {"META-INF__encryption.xml": f'<e><EncryptionMethod Algorithm="{algorithm}"/></e>'}


def test_a_protected_book_is_refused_and_one_with_obfuscated_fonts_is_not() -> None:
    with pytest.raises(DataError, match="DRM"):
        texts_of(book(**encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")), "epub")
    assert texts_of(book(**encryption("http://www.idpf.org/2008/embedding")), "epub")


def test_a_chapter_that_is_missing_is_said() -> None:
    document = read_document(book().replace(b"a.xhtml", b"c.xhtml"), "epub", ReadOptions())
    assert document.notes == ["OPS/text/a.xhtml, which is missing"]


@pytest.mark.parametrize("member", ["META-INF/container.xml", "OPS/p.opf"])
def test_a_book_without_its_list_of_chapters_is_refused(member: str) -> None:
    with pytest.raises(DataError, match="has no"):
        texts_of(book().replace(member.encode(), b"x" * len(member)), "epub")
