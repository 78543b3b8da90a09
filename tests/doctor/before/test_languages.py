"""Languages are told apart by script or by frequent words, and only where they can be."""

from __future__ import annotations

from collections import Counter

import pytest

from manyheads.doctor.before.languages import likeness, teller

GERMAN = "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
ENGLISH = "Two young, White males are outside near the bushes of a park."
KOREAN = "두 남자가 수풀 근처의 밖에 있다"


def test_languages_with_scripts_of_their_own_are_told_by_letters() -> None:
    tell = teller("ko", "en")
    assert tell is not None
    assert [tell(text) for text in (KOREAN, ENGLISH, "1999", "OK 가나다라마")] == [
        "source",
        "target",
        None,
        "source",
    ]
    swapped = teller("en", "ko-KR")
    assert swapped is not None
    assert swapped(KOREAN) == "target"


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("de-AT", "en_GB")])
def test_languages_in_latin_letters_are_told_by_words(source: str, target: str) -> None:
    tell = teller(source, target)
    assert tell is not None
    assert tell(GERMAN) == "source"
    assert tell(ENGLISH) == "target"
    assert tell("Berlin") is None
    assert tell(f"{GERMAN} {ENGLISH}") is None


def test_a_word_of_both_languages_counts_for_neither() -> None:
    tell = teller("de", "en")  # "in", "was" and "an" are both
    assert tell is not None
    assert tell("in was in an") is None


@pytest.mark.parametrize(
    ("source", "target"), [("xx", "en"), ("en", "en"), ("en-GB", "en-US"), ("ja", "zh"), ("", "")]
)
def test_nothing_is_told_of_languages_that_are_not_known_or_share_a_script(source: str, target: str) -> None:
    assert teller(source, target) is None


def test_likeness_counts_each_word_as_often_as_it_comes() -> None:
    assert likeness(Counter("aab"), Counter("ac")) == 2 / 3
    assert likeness({}, {"a": 1}) == 0
