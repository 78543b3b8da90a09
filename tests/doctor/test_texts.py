"""The texts of both languages hold the same names and the same placeholders."""

from __future__ import annotations

import pytest

from manyheads.doctor.texts import FINDING_TEXTS, LANGUAGES, check_agreement, load_texts

ENGLISH = {"a": {"severity": "error", "title": "one {count}", "cause": "two"}}


def test_both_files_of_the_package_are_loaded() -> None:
    assert tuple(FINDING_TEXTS) == LANGUAGES == ("en", "ko")
    assert load_texts("manyheads.doctor", "findings") == FINDING_TEXTS


def test_texts_that_agree_are_accepted() -> None:
    check_agreement(ENGLISH, {"a": {"title": "{count} 하나", "cause": "둘"}}, "x.ko.toml")


@pytest.mark.parametrize(
    ("korean", "message"),
    [
        ({"a": {"title": "{count}"}}, "x.ko.toml differs from the English texts in a.cause"),
        ({"a": {"title": "{count}", "cause": "", "cure": ""}}, "in a.cure"),
        ({"a": {"cause": "", "title": "{count}"}}, "in the order of the names"),
        ({"a": {"title": "{number}", "cause": ""}}, "in the placeholders of a.title"),
    ],
)
def test_texts_that_differ_are_refused(korean: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_agreement(ENGLISH, korean, "x.ko.toml")
