"""SubRip subtitles keep numbers, times and markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.subtitle_files import judged, read, reversed_words, texts_of, unchanged, written

from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.errors import DataError

FILM = """1
00:00:01,000 --> 00:00:02,500 X1:40 X2:600 Y1:20 Y2:50
<i>I do not know</i>

2
00:00:02,600 --> 00:00:04,000 X1:40 X2:600 Y1:20 Y2:50
what you <font color="#ff0000">want</font>.

3
00:00:10,000 --> 00:00:12,000
{\\an8}5 > 3 and 2 < 4, which is so old
that nobody writes about it.

4
00:00:13,000 --> 00:00:14,000
42
"""


def test_numbers_times_and_positions_are_no_text() -> None:
    assert texts_of(FILM, "srt") == [
        "I do not know what you want.",
        "5 > 3 and 2 < 4, which is so old that nobody writes about it.",
    ]
    assert judged(FILM, "srt") == judged(written(read(FILM, "srt"), reversed_words), "srt")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_line_ends_and_byte_order_marks_stay(line_end: str, encoding: str) -> None:
    data = FILM.replace("\n", line_end).encode(encoding)
    document = read_document(data, "srt", ReadOptions())
    assert document.write([unchanged(unit) for unit in document.units]) == data
    changed = document.write([reversed_words(unit) for unit in document.units]).decode(encoding)
    assert changed.count(line_end) == FILM.count("\n") == changed.count("\n")


def test_cues_without_a_blank_line_or_a_number_between_them_are_found() -> None:
    text = """1
00:00:01,000 --> 00:00:02,000
One.
2
00:00:03.000 --> 00:00:04.000
Two

lines.
00:00:05,000 --> 00:00:06,000
Three."""
    assert texts_of(text, "srt") == ["One.", "Two lines.", "Three."]


def test_a_file_without_times_is_refused() -> None:
    with pytest.raises(DataError, match="film has no -->"):
        read("Only text.", "srt", name="film")
    assert read("", "srt").units == []


LINES = [
    "",
    "1",
    "00:00:01,000 --> 00:00:02,000",
    "<i>Hello</i> there",
    "{\\an8}[x] (y)",
    "- A.",
    "♪ B",
    "C: [",
    "<b>D",
]


@given(st.lists(st.sampled_from(LINES), max_size=15), st.sampled_from(["\n", "\r\n"]))
def test_any_lines_stay_if_nothing_is_translated_and_can_be_translated(lines: list[str], line_end: str) -> None:
    text = line_end.join([*lines, "-->"])
    document = read(text, "srt")
    assert written(document, unchanged) == text
    assert written(document, reversed_words).count(LINES[2]) == text.count(LINES[2])
