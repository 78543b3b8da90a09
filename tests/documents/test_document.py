from __future__ import annotations

import pytest

from manyheads.documents.document import decode, numbered_lines
from manyheads.errors import DataError


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


@pytest.mark.parametrize(
    ("data", "declared"), [(b"\xff\xfe\x00", ""), (b"\xff", "utf-8"), (b"a", "no-such"), (b"a", "punycode")]
)
def test_bytes_of_another_encoding_are_refused(data: bytes, declared: str) -> None:
    with pytest.raises(DataError, match="none of its encoding"):
        decode(data, "a", declared)


def test_lines_have_their_offsets() -> None:
    assert list(numbered_lines("a\r\nb\n")) == [(0, "a"), (3, "b"), (5, "")]


def test_a_picture_is_no_text() -> None:
    with pytest.raises(DataError, match="a is no text"):
        decode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a")
