"""The texts of both languages hold the same names and the same placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer_doctor
from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.checks import learning
from transformer_doctor.checks.behaviour import OUTPUT_CHECKS
from transformer_doctor.checks.stepping import STEPPING
from transformer_doctor.texts import (
    CHECKS_IN_KOREAN,
    FINDING_TEXTS,
    LANGUAGES,
    _check_agreement,
    load_check_texts,
    load_texts,
)

ENGLISH = {"a": {"severity": "error", "title": "one {count}", "cause": "two"}}


def test_both_files_of_the_package_are_loaded() -> None:
    assert tuple(FINDING_TEXTS) == LANGUAGES == ("en", "ko")
    assert load_texts("transformer_doctor", "findings") == FINDING_TEXTS


def test_texts_that_agree_are_accepted() -> None:
    _check_agreement(ENGLISH, {"a": {"title": "{count} 하나", "cause": "둘"}}, "x.ko.toml")


def test_every_check_and_every_reason_has_a_korean_name() -> None:
    """Check the sentences of the tables and the sentences written in the code."""
    training = {text for name, text in vars(learning).items() if name.isupper() and isinstance(text, str)}
    named = {check.sentence for check in OUTPUT_CHECKS} | {STEPPING} | training
    assert named - CHECKS_IN_KOREAN.keys() == set()


def test_every_korean_name_is_that_of_a_sentence_in_the_code() -> None:
    code = "".join(path.read_text("utf-8") for path in Path(transformer_doctor.__file__).parent.rglob("*.py"))
    written = load_check_texts("transformer_doctor")
    named = {known.check for known in CATALOGUE.values()}
    assert [name for name in written if f'"{name}"' not in code and name not in named] == []


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
        _check_agreement(ENGLISH, korean, "x.ko.toml")
