r"""ASS and SSA subtitles keep sections, styles, comments, drawings and override tags."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.documents.subtitle_files import in_capitals, judged, read, reversed_words, texts_of, unchanged, written

FILM = r"""[Script Info]
Title: a film
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20
Style: Sign,Arial,30

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.50,Default,Ann,0,0,0,,{\i1}I, of course,{\i0}\Ndo not know
Dialogue: 0,0:00:01.20,0:00:02.00,Sign,,0,0,0,,{\pos(1,2)\an8}The old{comment}\hhouse
Comment: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,not this
Dialogue: 0,0:00:02.60,0:00:04.00,Default,Ann,0,0,0,,what you want.
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\p1}m 0 0 l 9 9{\p0}
Dialogue: 0,0:00:07.00,0:00:09.00,Default,,0,0,0,,{\k20}Twinkle {\k30}lit{\k10}tle {\k40}star.

[Fonts]
fontname: a.ttf
"""


def test_only_the_text_of_dialogue_is_translated() -> None:
    assert texts_of(FILM, "ass") == [
        "I, of course, do not know what you want.", "The old\u00a0house", "Twinkle little star.",
    ]  # fmt: skip
    assert written(read(FILM, "ass"), in_capitals) == (
        FILM.replace(r"I, of course,{\i0}\Ndo not know", r"I, OF COURSE,{\i0}\NDO NOT KNOW")
        .replace(r"The old{comment}\hhouse", r"THE OLD{comment}\hHOUSE")
        .replace("what you want.", "WHAT YOU WANT.")
        .replace(r"Twinkle {\k30}lit{\k10}tle {\k40}star.", r"TWINKLE {\k30}LITTLE{\k10} {\k40}STAR.")
    )


def test_an_independent_reader_finds_the_same_structure() -> None:
    assert judged(FILM, "ass") == judged(written(read(FILM, "ass"), reversed_words), "ass")


def test_fields_are_those_of_the_format_line() -> None:
    text = "[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,Hello, you.\n"
    assert texts_of(text, "ass") == ["Hello, you."]


def test_braces_of_a_translation_are_no_override_tags() -> None:
    text = "[Script Info]\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,A,,0,0,0,,A \\{b\\} c\n"
    assert texts_of(text, "ass") == ["A {b} c"]
    assert written(read(text, "ass"), in_capitals).endswith(",A \\{B\\} C\n")


TEXTS = [
    r"a\Nb",
    r"{\i1}c{\i0}",
    r"{\p1}m 0{\p0}d",
    "- e",
    r"\h",
    "[f]",
    "{",
    "}",
    r"\N- g",
    "♪ h ♪",
    "(i) ",
    "MAN: j",
]


@given(st.lists(st.lists(st.sampled_from(TEXTS), max_size=4).map("".join), max_size=5))
def test_any_texts_stay_if_nothing_is_translated_and_can_be_translated(texts: list[str]) -> None:
    events = "".join(f"Dialogue: 0,0:00:01.00,0:00:02.00,A,,0,0,0,,{text}\n" for text in texts)
    document = read(f"[Script Info]\n[Events]\n{events}", "ass")
    assert written(document, unchanged).endswith(events)
    assert written(document, reversed_words).count("\nDialogue: 0,0:00:01.00,0:00:02.00,A,,0,0,0,,") == len(texts)
