"""Languages are distinguished by script or by frequent words, and only where this is possible."""

from __future__ import annotations

from collections import Counter

import pytest

from manyheads.checks.languages import language_classifier, likeness

GERMAN = "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
ENGLISH = "Two young, White males are outside near the bushes of a park."
KOREAN = "두 남자가 수풀 근처의 밖에 있다"


def test_languages_of_different_scripts_are_recognised_by_letters() -> None:
    classify = language_classifier("ko", "en")
    assert classify is not None
    assert [classify(text) for text in (KOREAN, ENGLISH, "1999", "OK 가나다라마")] == [
        "source",
        "target",
        None,
        "source",
    ]
    swapped = language_classifier("en", "ko-KR")
    assert swapped is not None
    assert swapped(KOREAN) == "target"


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("de-AT", "en_GB")])
def test_languages_in_latin_letters_are_recognised_by_words(source: str, target: str) -> None:
    classify = language_classifier(source, target)
    assert classify is not None
    assert classify(GERMAN) == "source"
    assert classify(ENGLISH) == "target"
    assert classify("Berlin") is None
    assert classify(f"{GERMAN} {ENGLISH}") is None


def test_a_word_of_both_languages_counts_for_neither() -> None:
    classify = language_classifier("de", "en")  # "in", "was" and "an" are both
    assert classify is not None
    assert classify("in was in an") is None


@pytest.mark.parametrize(
    ("source", "target"), [("xx", "en"), ("en", "en"), ("en-GB", "en-US"), ("ja", "zh"), ("", "")]
)
def test_unknown_languages_and_languages_of_one_script_have_no_classifier(source: str, target: str) -> None:
    assert language_classifier(source, target) is None


def test_likeness_counts_repeated_words() -> None:
    assert likeness(Counter("aab"), Counter("ac")) == 2 / 3
    assert likeness({}, {"a": 1}) == 0
