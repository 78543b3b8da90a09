from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.text.normalize import clean, normalize

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates included
CHARACTERS = list(map(chr, range(0x10000)))  # no plane above has white space or a control character
WHITE_SPACE = [c for c in CHARACTERS if c.isspace()]
CONTROLS = [c for c in CHARACTERS if unicodedata.category(c) == "Cc" and not c.isspace()]


@given(ANY_TEXT)
def test_normalisation_is_idempotent(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(ANY_TEXT)
def test_normalised_text_is_composed_and_encodable_with_single_blanks_inside_as_its_only_white_space(
    text: str,
) -> None:
    normal = normalize(text)
    normal.encode()
    assert unicodedata.is_normalized("NFC", normal)
    assert normal == " ".join(normal.split(" ")).strip()
    assert "  " not in normal
    assert not {c for c in normal if c != " " and (c.isspace() or unicodedata.category(c) in ("Cc", "Cs"))}


def test_every_kind_of_white_space_becomes_one_blank_inside_and_is_removed_at_the_ends() -> None:
    assert {"\r", "\t", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\u2029", "\u3000"} <= set(WHITE_SPACE)
    for blank in WHITE_SPACE:
        assert normalize(f"{blank}a{blank}{blank} b{blank}") == "a b", repr(blank)


def test_control_characters_and_byte_order_marks_are_removed_anywhere() -> None:
    assert "\0" in CONTROLS
    for control in [*CONTROLS, "\ufeff"]:
        assert normalize(f"{control}a{control}b {control} c{control}") == "ab c", repr(control)


def test_an_accent_is_composed_with_its_letter_after_a_control_character_between_them_is_removed() -> None:
    assert normalize("e\0\u0301") == "é"


@pytest.mark.parametrize("text", ["👩\u200d👩\u200d👧", "می\u200cخواهم", "क्\u200dष", "❤\ufe0f", "a\u00adb"])
def test_joiners_and_other_format_characters_stay(text: str) -> None:
    assert normalize(text) == text


def test_decomposed_hangul_is_composed() -> None:
    assert normalize(unicodedata.normalize("NFD", "한국어")) == "한국어"


def test_compatibility_characters_stay_what_they_are() -> None:
    assert normalize("ﬁ ① Ａ") == "ﬁ ① Ａ"


def test_surrogates_are_paired_or_replaced_and_their_neighbours_stay() -> None:
    assert normalize("a\ud83d\ude00b") == "a😀b"
    assert normalize("a\ud83db\ude00c") == "a\ufffdb\ufffdc"
    assert normalize("\ud83d") == "\ufffd"


def test_cleaning_keeps_white_space_inside() -> None:
    assert clean("\ufeff a \u2028\t b\xa0c\0\r\n") == "a \u2028\t b\xa0c"
