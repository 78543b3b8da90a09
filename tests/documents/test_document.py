from __future__ import annotations

import importlib

import pytest

from manyheads.documents.document import (
    FORMATS,
    SUFFIXES,
    ReadOptions,
    decode,
    format_of,
    numbered_lines,
    read_document,
)
from manyheads.errors import DataError, UsageError


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("a.srt", b"", "srt"),
        ("a.HTML", b"", "html"),
        ("a.txt", b"WEBVTT", None),
        ("a", b"\xef\xbb\xbfWEBVTT\n", "vtt"),
        ("a", b"1\n00:00:01,000 --> 00:00:02,000\na", "srt"),
        ("a", b"[Script Info]\n", "ass"),
        ("a", b"\n<!DOCTYPE html><p>", "html"),
        ("a.xml", b"<?xml version='1.0'?>\n<xliff>", "xliff"),
        ("a", b"plain text", None),
        ("a.de", b"plain text", None),
    ],
)
def test_a_format_is_told_by_the_name_and_the_content(name: str, data: bytes, form: str | None) -> None:
    assert format_of(name, data) == form


@pytest.mark.parametrize("data", [b"%PDF-1.7", b"\xd0\xcf\x11\xe0...", b"{\\rtf1", b"PK\3\4 a zip"])
def test_what_cannot_be_translated_is_refused_with_a_way_out(data: bytes) -> None:
    with pytest.raises(DataError, match=r"Convert|Save|Unpack"):
        format_of("a", data)


def test_every_format_has_a_reader_and_suffixes_of_its_own() -> None:
    for known in FORMATS.values():
        assert callable(importlib.import_module(f"manyheads.documents.{known.module}").read)
    assert len(set(SUFFIXES)) == len(SUFFIXES)
    with pytest.raises(UsageError, match="no format 'x'"):
        read_document(b"", "x", ReadOptions())


@pytest.mark.parametrize(
    "data",
    [
        "für\n".encode(),
        "\ufefffür\r\n".encode(),
        "\ufefffür".encode("utf-16-le"),
        "\ufefffür".encode("utf-16-be"),
        "für".encode("latin-1"),
        "für – dich".encode("cp1252"),
        "안녕하세요".encode("cp949"),
    ],
)
def test_a_text_keeps_its_encoding_and_byte_order_mark(data: bytes) -> None:
    text, encode = decode(data, "a")
    assert encode(text) == data
    assert "ü" in text or "안" in text


def test_letters_that_an_encoding_lacks_are_references_or_the_file_becomes_utf8() -> None:
    _, encode = decode("für".encode("latin-1"), "a", "latin-1")
    assert encode("한") == b"&#54620;"
    _, encode = decode("für".encode("latin-1"), "a")
    assert encode("한") == "\ufeff한".encode()


@pytest.mark.parametrize(("data", "declared"), [(b"\xff\xfe\x00", ""), (b"\xff", "utf-8"), (b"a", "no-such")])
def test_bytes_of_another_encoding_are_refused(data: bytes, declared: str) -> None:
    with pytest.raises(DataError, match="none of its encoding"):
        decode(data, "a", declared)


def test_lines_have_their_offsets() -> None:
    assert list(numbered_lines("a\r\nb\n")) == [(0, "a"), (3, "b"), (5, "")]
