"""Archives of OPUS and two files of lines: pairs, languages, licence and origin, and the error messages."""

from __future__ import annotations

import gzip
import io
import stat
import zipfile
import zlib
from pathlib import Path

import pytest

from bitext.errors import DataError, UsageError
from bitext.formats.moses import notes_of_archive, read_archive, read_moses
from bitext.formats.text import ParallelText, TextRequest

README = """Corpus Name: Tatoeba
     Package: Tatoeba.de-en in Moses format
     Website: http://opus.nlpl.eu/Tatoeba-v2023-04-12.php
     Release: v2023-04-12
     License: CC-BY 2.0 FR
"""
TEXT = {"Tatoeba.de-en.de": "Hallo\nWelt\n", "Tatoeba.de-en.en": "Hello\nworld\n", "Tatoeba.de-en.xml": "<x/>"}


def make_archive(
    members: dict[str | zipfile.ZipInfo, str | bytes], compression: int = zipfile.ZIP_DEFLATED
) -> io.BufferedReader:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    packed.seek(0)
    return io.BufferedReader(packed)  # type: ignore[arg-type]


def read(content: bytes | bytearray) -> ParallelText:
    return read_archive(io.BufferedReader(io.BytesIO(content)), TextRequest(), "x.zip")  # type: ignore[arg-type]


def test_languages_licence_and_origin_are_read_from_an_archive_of_opus() -> None:
    text = read_archive(make_archive({**TEXT, "README": README, "LICENSE": "no\n"}), TextRequest(), "x.zip")
    assert text.languages == ("de", "en")
    assert (text.licence, text.origin) == ("CC-BY 2.0 FR", "http://opus.nlpl.eu/Tatoeba-v2023-04-12.php")
    assert list(text.pairs) == [("Hallo", "Hello"), ("Welt", "world")]


def test_pairs_have_the_requested_direction() -> None:
    text = read_archive(make_archive({**TEXT, "LICENSE": "\nMIT License\nx\n"}), TextRequest("en", "de"), "x.zip")
    assert list(text.pairs) == [("Hello", "Hallo"), ("world", "Welt")]
    assert text.licence == "MIT License"


def test_the_notes_of_an_archive_are_read_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(make_archive({**TEXT, "README": README}).read())
    assert notes_of_archive(tmp_path / "x.zip")[0] == "CC-BY 2.0 FR"


def symlink_member() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("Tatoeba.de-en.en")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({**TEXT, "../evil.de": "x"}, r"the member '\.\./evil\.de', which leads out of its folder"),
        ({**TEXT, "/etc/evil": "x"}, r"the member '/etc/evil', which leads out"),
        ({**TEXT, "C:\\evil": "x"}, r"the member 'C:/evil', which leads out"),
        ({"a.de": "x", symlink_member(): "/etc/passwd"}, "is a link"),
        (
            {"a.de-en.de": "x\n" * (1 << 26), "a.de-en.en": "x"},
            r"x\.zip: a\.de-en\.de unpacks to more than 200 times",
        ),
        ({"a.de": "x"}, r"no two files of lines, but: a\.de"),
        ({"a.de": "x", "a.en": "x", "b.de": "x", "b.en": "x"}, "several texts, but: a, b"),
        ({"a.de-en.de": "x\ny\n", "a.de-en.en": "x\n"}, r"a\.de-en\.de has 2 lines and .*a\.de-en\.en has 1 lines"),
        ({"a.de-en.de": "x", "a.de-en.en": b"\xff\xe4x"}, r"a\.de-en\.en, line 1: byte 0xFF"),
    ],
    ids=["..", "absolute", "drive", "link", "bomb", "one side", "two texts", "lengths", "encoding"],
)
def test_a_bad_archive_is_refused_by_name(members: dict[str | zipfile.ZipInfo, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_archive(make_archive(members), TextRequest("de", "en"), "x.zip").pairs)  # type: ignore[arg-type]


def test_an_archive_that_cannot_be_read_has_the_cure_of_its_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read: Is a directory\. This is a folder: name a file"):
        notes_of_archive(tmp_path)


@pytest.mark.parametrize(
    ("compression", "damaged", "message"),
    [
        (zipfile.ZIP_DEFLATED, 500, "a.de cannot be read"),
        (zipfile.ZIP_LZMA, 60, "a.de cannot be read: Corrupt input"),
    ],
)
def test_a_damaged_member_is_named(compression: int, damaged: int, message: str) -> None:
    numbers = "".join(f"{n**7}\n" for n in range(9_999))
    content = bytearray(make_archive({"a.de": numbers, "a.en": numbers}, compression).read())
    content[damaged : damaged + 20] = b"\xff" * 20
    with pytest.raises(DataError, match=rf"x\.zip: {message}.* Get it again"):
        list(read(content).pairs)


def test_an_archive_with_a_false_size_or_a_password_is_refused() -> None:
    bomb = make_archive({"a.de": "x\n" * (1 << 25), "a.en": "x"}).read()
    directory = bomb.index(b"PK\x01\x02")
    with pytest.raises(DataError, match=r"a\.de unpacks to more than 200 times its size"):
        read(bomb[: directory + 20] + (1 << 30).to_bytes(4, "little") + bomb[directory + 24 :])
    with pytest.raises(DataError, match=r"member 'a\.de', which is encrypted"):
        read(bomb[: directory + 8] + b"\x01" + bomb[directory + 9 :])
    with pytest.raises(DataError, match=r"x\.zip cannot be read: File is not a zip file"):
        read(b"x")


def test_two_files_are_read_compressed_or_not_in_any_encoding(tmp_path: Path) -> None:
    german, english = tmp_path / "c.de.gz", tmp_path / "c.en"
    german.write_bytes(gzip.compress("Grüße\x85x\r\n\nzwei".encode()))
    english.write_bytes("a\u2028b\nc\nd\n".encode("utf-16"))
    text = read_moses((english, german), TextRequest("de", "en"))
    assert list(text.pairs) == [("Grüße\x85x", "a\u2028b"), ("", "c"), ("zwei", "d")]


def test_errors_on_two_files_name_what_is_missing(tmp_path: Path) -> None:
    paths = tmp_path / "c.de", tmp_path / "c.en"
    paths[0].write_text("a\nb\n")
    paths[1].write_text("a\n")
    with pytest.raises(DataError, match=r"c\.de has 2 lines and .*c\.en has 1 lines"):
        list(read_moses(paths, TextRequest()).pairs)
    with pytest.raises(DataError, match=r"no text in ko\. Languages there: de, en"):
        read_moses(paths, TextRequest("de", "ko"))
    with pytest.raises(UsageError, match="the languages are not clear"):
        read_moses((paths[0], tmp_path / "words.txt"), TextRequest())
    (tmp_path / "c.en.gz").write_bytes(gzip.compress(zlib.compress(b"x" * 999)[:9])[:-4])
    with pytest.raises(DataError, match=r"c\.en\.gz is truncated"):
        list(read_moses((paths[0], tmp_path / "c.en.gz"), TextRequest()).pairs)
