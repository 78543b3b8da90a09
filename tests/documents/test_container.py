"""A container is read within limits, and packed with nothing but the translated members changed."""

from __future__ import annotations

import io
import re
import tracemalloc
from collections.abc import Callable
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest
from tests.documents.archives import archive, shout

from manyheads.documents import container
from manyheads.documents.container import Container, language_setter
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.html import read_html
from manyheads.documents.units import Part, Translated
from manyheads.errors import DataError


def unusual_archive() -> bytes:
    """Return an archive whose members differ in all that a list of members tells."""
    output = io.BytesIO()
    with ZipFile(output, "w") as file:
        file.comment = b"a comment"
        for index, name in enumerate(["mimetype", "b/", "b/größe.xml", "a.xml", "image"]):
            info = ZipInfo(name, (1980 + index, 2, 3, 4, 6, 8))
            info.compress_type = ZIP_DEFLATED if name.endswith(".xml") else ZIP_STORED
            info.comment, info.extra = name.encode(), b"\x99\x99\x02\x00ab" * (index % 2)
            info.create_system, info.external_attr, info.internal_attr = index % 4, abs(index - 2) << 16, index % 2
            file.writestr(info, f"<p>{'ein ' * 9}{name}</p>" * (not name.endswith("/")))
            info.external_attr = abs(index - 2) << 16  # where it is 0, `writestr` sets another
    return output.getvalue()


METADATA = (
    *("filename", "date_time", "compress_type", "comment", "extra"),
    *("create_system", "external_attr", "internal_attr"),
)


def document_of(data: bytes, *members: str) -> Document:
    opened = Container(data, "the file")
    return opened.document([Part(opened.xml(member), [read_html], member) for member in members], str, [])


def test_all_but_the_translated_member_is_as_it_was() -> None:
    data = unusual_archive()
    document = document_of(data, "b/größe.xml")
    written = document.write(map(shout, document.units))
    with ZipFile(io.BytesIO(data)) as old, ZipFile(io.BytesIO(written)) as new:
        assert new.comment == old.comment
        assert new.testzip() is None
        for before, after in zip(old.infolist(), new.infolist(), strict=True):
            for name in METADATA:
                assert getattr(after, name) == getattr(before, name)
            content = old.read(before).decode()
            expected = f"<p>{content[3:-4].upper()}</p>" if "größe" in before.filename else content
            assert new.read(after).decode() == expected


def test_a_document_without_a_changed_text_is_the_file_itself() -> None:
    data = unusual_archive()
    document = document_of(data, "b/größe.xml", "a.xml")
    assert document.write(Translated(unit.text) for unit in document.units) == data


def test_a_member_that_is_not_translated_may_be_damaged_or_of_any_size() -> None:
    data = bytearray(archive({"a.xml": "<p>Ein Hund</p>", "image": "x" * 100}))
    data[data.index(b"image") + 7] ^= 255  # in its packed bytes
    document = document_of(bytes(data), "a.xml")
    assert b"image" in document.write(map(shout, document.units))


def with_member(name: str, content: bytes = b"<p/>", kind: int = ZIP_DEFLATED) -> bytes:
    output = io.BytesIO()
    with ZipFile(output, "w") as file:
        file.writestr("a.xml", "<p>Ein Hund</p>")
        file.writestr(name, content, kind)
    return output.getvalue()


def without_declared_size(data: bytes) -> bytes:
    """Return an archive whose list declares one byte for every member."""
    return re.sub(rb"(PK\x01\x02.{20}).{4}", b"\\1\1\0\0\0", data, flags=re.DOTALL)


def with_flag(data: bytes) -> bytes:
    return re.sub(rb"(PK\x01\x02.{4}).", b"\\1\1", data, flags=re.DOTALL)


def with_bad_content(data: bytes) -> bytes:
    return re.sub(rb"(PK\x01\x02.{12}).{4}", b"\\1\0\0\0\0", data, flags=re.DOTALL)


def with_offset(data: bytes) -> bytes:
    return re.sub(rb"(PK\x01\x02.{38}).{4}", b"\\1\xff\xff\xff\0", data, count=1, flags=re.DOTALL)


BOMB = b"<p>" + b" " * (container.MAX_UNPACKED + 1) + b"</p>"
DOUBLED = with_member("b.xml").replace(b"b.xml", b"a.xml")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: b"", "damaged archive"),
        (lambda: b"PK\x03\x04 no archive", "damaged archive"),
        (lambda: archive({"a.xml": "<p>Ein Hund</p>"})[:-30], "damaged archive"),
        (lambda: archive({"a.xml": "<p>Ein Hund</p>"})[20:], "damaged archive|damaged"),
        (lambda: archive({"b.xml": "<p>Ein Hund</p>"}), "no a.xml"),
        (lambda: archive({"a.xml": "<p>Ein Hund"}), "no well-formed XML"),
        (lambda: archive({"a.xml": "<!DOCTYPE p [<!ENTITY a 'b'>]><p>&a;</p>"}), "declares the entity"),
        (lambda: DOUBLED, "two members"),
        (lambda: with_member("../b.xml"), "outside its folder"),
        (lambda: with_member("/etc/b.xml"), "outside its folder"),
        (lambda: with_member("c\\..\\..\\b.xml"), "outside its folder"),
        (lambda: with_member("C:b.xml"), "outside its folder"),
        (lambda: with_flag(with_member("b.xml")), "encrypted"),
        (lambda: archive({"a.xml": BOMB.decode()}), "unpacks to too much"),
        (lambda: without_declared_size(archive({"a.xml": BOMB.decode()})), "unpacks to too much|damaged"),
        (lambda: archive(dict.fromkeys(map(str, range(container.MAX_MEMBERS + 1)), "")), "members"),
        (lambda: with_offset(with_member("b.xml")), "damaged archive"),
        (lambda: with_bad_content(archive({"a.xml": "<p>Ein Hund</p>"})), "damaged"),
    ],
)  # fmt: skip
def test_damaged_and_hostile_archives_are_refused_in_one_line(make: Callable[[], bytes], message: str) -> None:
    data = make()
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as error:
        document_of(data, "a.xml")
    assert "\n" not in str(error.value)
    assert tracemalloc.get_traced_memory()[1] < container.MAX_UNPACKED // 2
    tracemalloc.stop()


def test_the_texts_of_an_archive_are_bounded_together_and_by_the_size_of_the_archive() -> None:
    opened = Container(archive(dict.fromkeys("abc", " " * (5 << 20))), "the file")
    opened.text("a")
    with pytest.raises(DataError, match="unpacks to too much"):
        opened.text("b")


def test_a_text_that_is_packed_in_a_way_of_its_own_is_refused() -> None:
    with pytest.raises(DataError, match="unusual"):
        document_of(with_member("b.xml", kind=ZIP_BZIP2), "b.xml")


def test_a_signed_file_is_said_to_lose_its_signature() -> None:
    assert "signature" in document_of(with_member("_xmlsignatures/sig1.xml"), "a.xml").notes[0]


@pytest.mark.parametrize(
    ("source", "target", "result"),
    [
        ("en", "de", 'l="de" l="fr" l="de"'),
        ("eng_Latn", "pt_BR", 'l="pt-BR" l="fr" l="pt-BR"'),
        ("", "de", 'l="en-US" l="fr" l="en"'),
        ("en", "", 'l="en-US" l="fr" l="en"'),
    ],
)
def test_only_codes_of_the_source_language_become_that_of_the_target(source: str, target: str, result: str) -> None:
    finish = language_setter(['(l=")([^"]*)'], ReadOptions("", source, target))
    assert finish('l="en-US" l="fr" l="en"') == result
