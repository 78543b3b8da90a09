"""WebVTT subtitles keep the header, styles, notes, regions, identifiers, settings and tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.subtitle_files import in_capitals, judged, read, reversed_words, texts_of, unchanged, written

from manyheads.errors import DataError

FILM = """WEBVTT - A film
Kind: captions

STYLE
::cue(.red) { color: red }

REGION
id:fred
width:40%

NOTE a note
over two lines

intro
00:01.000 --> 00:02.500 position:10% align:left
<v Ann>I <c.red>do not</c> know

00:02.600 --> 00:04.000 position:10% align:left
<v Ann>what <ruby>you<rt>ju</rt></ruby> want &amp; <00:03.000>need.

00:05.000 --> 00:06.000 line:5%
<v Bob>Never &lt;3
"""


def test_only_the_text_of_cues_is_translated() -> None:
    assert texts_of(FILM, "vtt") == ["I do not know what you want & need.", "Never <3"]
    assert written(read(FILM, "vtt"), in_capitals) == (
        FILM.replace("I <c.red>do not</c> know", "I <c.red>DO NOT</c> KNOW")
        .replace("what <ruby>you<rt>ju</rt></ruby> want", "WHAT <ruby>YOU<rt>ju</rt></ruby> WANT")
        .replace("need.", "NEED.")
        .replace("Never", "NEVER")
    )


def test_an_independent_reader_finds_the_same_structure() -> None:
    assert judged(FILM, "vtt") == judged(written(read(FILM, "vtt"), reversed_words), "vtt")


@pytest.mark.parametrize(
    ("second", "joined"),
    [("position:10%", True), ("position:90%", False), ("position:10% line:84.67%", True),
     ("position:10% line:10%", False), ("position:10% size:80%", True)],
)  # fmt: skip
def test_cues_at_another_place_are_not_joined_but_lower_lines_are_one_place(second: str, joined: bool) -> None:
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000 position:10%\nI go\n\n00:02.000 --> 00:03.000 {second}\nto bed.\n"
    assert texts_of(text, "vtt") == (["I go to bed."] if joined else ["I go", "to bed."])


def test_a_file_without_the_header_is_refused() -> None:
    with pytest.raises(DataError, match="has no WEBVTT"):
        read("00:01.000 --> 00:02.000\nHello\n", "vtt")


LINES = [
    "",
    "NOTE",
    "STYLE",
    "00:01.000 --> 00:02.000",
    "00:01.000 --> x",
    "<v A>Hi <b>you</b>",
    "&amp; [<i>a</i>]",
    "<rt>",
    "- <c",
]


@given(st.lists(st.sampled_from(LINES), max_size=15))
def test_any_lines_stay_if_nothing_is_translated_and_can_be_translated(lines: list[str]) -> None:
    text = "\n".join(["WEBVTT", *lines])
    document = read(text, "vtt")
    assert written(document, unchanged) == text
    assert written(document, reversed_words).count("-->") == text.count("-->")
