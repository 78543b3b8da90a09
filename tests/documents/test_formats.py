from __future__ import annotations

import importlib

import pytest

from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import FORMATS, SUFFIXES, format_of, read_document
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
