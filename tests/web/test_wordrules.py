from __future__ import annotations

import pytest

from manyheads.web.wordrules import _in_javascript, describe_word_rules


def test_escapes_are_translated_to_javascript() -> None:
    assert _in_javascript(r"(?u)\!\-[\!\-\[]\.") == r"!-[!\-\[]\."
    assert _in_javascript(r"\U0001F600\u00e4") == r"\u{1f600}\u00e4"
    assert _in_javascript(r"\d[\d]{2}") == r"[\p{Nd}][\p{Nd}]{2}"


@pytest.mark.parametrize("language", ["zh", pytest.param("fr", marks=pytest.mark.slow)])
def test_rules_that_are_more_than_patterns_have_no_description(language: str) -> None:
    pytest.importorskip("spacy")
    assert describe_word_rules(language) is None


def test_special_words_have_the_tokens_of_spacy() -> None:
    pytest.importorskip("spacy")
    rules = describe_word_rules("en")
    assert rules is not None
    assert rules["special"]["don't"] == ["do", "n't"]
