"""Languages are told apart by script or by frequent words, and only where they can be."""

from __future__ import annotations

from collections import Counter

import pytest

from manyheads.doctor.checks.languages import language_classifier, likeness

GERMAN = "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
ENGLISH = "Two young, White males are outside near the bushes of a park."
KOREAN = "두 남자가 수풀 근처의 밖에 있다"


def test_languages_with_scripts_of_their_own_are_told_by_letters() -> None:
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
def test_languages_in_latin_letters_are_told_by_words(source: str, target: str) -> None:
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
def test_nothing_is_told_of_languages_that_are_not_known_or_share_a_script(source: str, target: str) -> None:
    assert language_classifier(source, target) is None


def test_likeness_counts_each_word_as_often_as_it_comes() -> None:
    assert likeness(Counter("aab"), Counter("ac")) == 2 / 3
    assert likeness({}, {"a": 1}) == 0
