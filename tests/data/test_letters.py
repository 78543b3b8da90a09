"""Letters are those of the Unicode categories, on every plane."""

from __future__ import annotations

import unicodedata

from manyheads.data.letters import are_letters, code_points, text_of


def test_letters_are_those_of_the_unicode_categories() -> None:
    text = "aß\u0301한 \n1_.½\U0001d7d9\U00010400\U0001f600\uffff\udc80"
    expected = [unicodedata.category(symbol)[0] in "LM" for symbol in text]
    assert are_letters(code_points(text)).tolist() == expected
    assert sum(expected) == 5


def test_text_survives_conversion_to_code_points_and_back() -> None:
    text = "a한\U00010400\udc80"
    assert text_of(code_points(text)) == text
