from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.text.normalize import clean, normalize, normalize_target, source_form

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


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
        ("\u200eab\u200b c\u2060d\u202ae\u202c\u2066f\u2069\u200f", "ab cdef"),
        ("ﬁnden ﬂach oﬀen aﬃn eﬄ ĳs ǆep", "finden flach offen affin effl ijs džep"),
        ("Ｗｉｅ　ｇｅｈｔ’ｓ？　１２．３", "Wie\u3000geht’s?\u300012.3"),
        ("﻿한국어는 ＯＫ！", "﻿한국어는 OK!"),
        ("𝐇𝒂𝓁𝕝𝗈", "Hallo"),
        ("ﻣﺮﺣﺒﺎ", "مرحبا"),
        ("Où\u00a0? 1\u202f000", "Où ? 1 000"),
    ],
)
def test_a_source_is_written_without_typographic_marks(text: str, plain: str) -> None:
    assert source_form(text) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("今天，天气很好！ＡＢＣ１２３（是）", "今天，天气很好！ABC123（是）"),
        ("１２，０００円で５０％です。ｶﾞｷﾞ｡", "12,000円で50％です。ガギ。"),
        ("ภาษา\u200bไทย\u00ad \u2060", "ภาษา\u200bไทย "),
        ("ភាសា\u200bខ្មែរ", "ភាសា\u200bខ្មែរ"),
        ("ພາສາ\u200bລາວ မြန်မာ\u200bစာ", "ພາສາ\u200bລາວ မြန်မာ\u200bစာ"),
        ("日本\u200b語", "日本語"),
        ("می\u200cخواهم क्\u200dष 👩\u200d👩\u200d👧 ❤\ufe0f 🏴\U000e0067\U000e0062\U000e007f", None),
        ("Straße ½ ① ² Ⅷ ™ œ æ – “quotes” … 한글 ﷺ ñ", None),
    ],
    ids=range(8),
)
def test_what_a_script_needs_stays_in_a_source(text: str, plain: str | None) -> None:
    assert source_form(text) == (text if plain is None else plain)


def test_a_full_width_or_styled_letter_becomes_what_unicode_says_it_is_compatible_with() -> None:
    letters = "".join(map(chr, [*range(0xFF01, 0xFF5F), *range(0xFB00, 0xFB07), *range(0x1D400, 0x1D454)]))
    assert source_form(letters) == unicodedata.normalize("NFKC", letters)


@given(st.text(st.sampled_from("aß é.!\u00ad\u200b\u200c\u200e\u00a0\u202fﬁＡ１，．｡ｶﾞ。語かｶไ\ufeff\U0001d400")))
def test_the_form_of_a_source_is_its_own_form(text: str) -> None:
    form = normalize_target(source_form(text))
    assert form == normalize(source_form(text)) == normalize_target(source_form(form))


def test_targets_keep_their_no_break_blanks() -> None:
    assert normalize_target(" Quoi\u00a0? 1\u202f000\u00a0€ \u00a0x\u00a0\u00a0y\u00a0") == (
        "Quoi\u00a0? 1\u202f000\u00a0€ x\u00a0y"
    )


@given(ANY_TEXT)
def test_the_form_of_a_target_is_normalised_but_for_no_break_blanks(text: str) -> None:
    form = normalize_target(text)
    assert normalize(form) == normalize(text)
    assert normalize_target(form) == form
