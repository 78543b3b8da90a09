"""Lines are folded between words, and wide characters take two columns."""

from __future__ import annotations

import pytest

from transformer_doctor.columns import _widen, fold_lines
from transformer_doctor.museum import EXHIBITS
from transformer_doctor.texts import LANGUAGES, Language


def test_a_folded_line_is_indented_below_the_text_after_its_label() -> None:
    line = "  seen  the loss is 2.0 after 40 updates; chance allows 3.0"
    assert list(fold_lines([line, "short"], 30)) == [
        "  seen  the loss is 2.0 after",
        "        40 updates; chance",
        "        allows 3.0",
        "short",
    ]
    assert list(fold_lines(["text     one two three"], 18)) == ["text     one two", "         three"]


def test_wide_characters_count_twice_and_output_without_a_terminal_is_not_folded() -> None:
    assert list(fold_lines(["패딩을 글처럼 읽는다"], 13)) == ["패딩을 글처럼", "읽는다"]
    assert list(fold_lines(["a " * 100], None)) == ["a " * 100]


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert list(fold_lines(["see docs/howto/python-api.md now"], 20)) == [
        "see",
        "docs/howto/python-api.md",
        "now",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_folding_the_texts_of_the_museum_loses_no_word(language: Language) -> None:
    for exhibit in EXHIBITS:
        for part in ("title", "seen", "wrong", "mend"):
            lines = list(fold_lines([exhibit.text(language)[part]], 80))
            assert " ".join(lines) == exhibit.text(language)[part]
            assert max(len(_widen(line)) for line in lines) <= 80
