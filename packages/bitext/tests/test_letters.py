"""Letters are those of the Unicode categories, on every plane."""

from __future__ import annotations

import unicodedata

from bitext.letters import are_letters, code_points, has_letters, has_text, text_of


def test_letters_are_those_of_the_unicode_categories() -> None:
    text = "aß\u0301한 \n1_.½\U0001d7d9\U00010400\U0001f600\uffff\udc80"
    expected = [unicodedata.category(symbol)[0] in "LM" for symbol in text]
    assert are_letters(code_points(text)).tolist() == expected
    assert sum(expected) == 5


def test_text_survives_conversion_to_code_points_and_back() -> None:
    text = "a한\U00010400\udc80"
    assert text_of(code_points(text)) == text


def test_text_is_what_can_be_seen() -> None:
    """White space, control characters and what Unicode lets fonts ignore are no text, alone or together."""
    unseen = {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000), *range(0xFFF0, 0xFFFC)}
    unseen |= {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0}  # fillers, joiners, Braille
    seen_formats = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    seen_formats |= {*range(0x13430, 0x13440)}
    # all planes with letters or controls; every 16th character of the rest
    for number in (
        *range(0x20000),
        *range(0x20000, 0xE0000, 16),
        *range(0xE0000, 0xE2000),
        *range(0xE2000, 0x110000, 16),
    ):
        kind = unicodedata.category(chr(number))
        hidden = number in unseen or (kind in ("Cc", "Cf", "Zs", "Zl", "Zp") and number not in seen_formats)
        assert has_text(chr(number)) != hidden, f"U+{number:04X}"
        assert has_text(f" \u200b{chr(number)}\u00ad\ufeff") != hidden, f"U+{number:04X}"
    assert not has_text("")


def test_fillers_are_no_letters_that_can_be_seen() -> None:
    assert list(map(has_letters, ("a", "안", " \u3164x", "7 🙂 .", "\u115f\u1160\u3164\uffa0", ""))) == [
        True, True, True, False, False, False
    ]  # fmt: skip
