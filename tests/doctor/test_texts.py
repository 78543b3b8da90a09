"""The texts of both languages hold the same names and the same placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyheads
from manyheads.doctor.checks.behaviour import OUTPUT_CHECKS
from manyheads.doctor.checks.learning import _ALL_CHECKS, _REASONS
from manyheads.doctor.checks.registry import _TRAINED, NEW_TRAINING
from manyheads.doctor.checks.stepping import STEPPING
from manyheads.doctor.checks.text import _LABELS, _LINES, _PAIRS
from manyheads.doctor.texts import (
    _CHECKS_IN_KOREAN,
    FINDING_TEXTS,
    LANGUAGES,
    _check_agreement,
    check_text,
    load_texts,
)
from manyheads.runs.examine_run import _CURVES, _EXPORTS

ENGLISH = {"a": {"severity": "error", "title": "one {count}", "cause": "two"}}


def test_both_files_of_the_package_are_loaded() -> None:
    assert tuple(FINDING_TEXTS) == LANGUAGES == ("en", "ko")
    assert load_texts("manyheads.doctor", "findings") == FINDING_TEXTS


def test_texts_that_agree_are_accepted() -> None:
    _check_agreement(ENGLISH, {"a": {"title": "{count} 하나", "cause": "둘"}}, "x.ko.toml")


def test_every_check_and_every_reason_has_a_korean_name() -> None:
    """Check the sentences of the tables and the sentences written in the code."""
    tables = [NEW_TRAINING, *_TRAINED.values(), OUTPUT_CHECKS]
    named = {text for table in tables for check in table for text in (check.sentence,) if text}
    named |= {check.reason for table in (NEW_TRAINING, *_TRAINED.values()) for check in table if check.reason}
    named |= {*_PAIRS, *_LABELS, *_LINES, _CURVES, _EXPORTS, STEPPING, *_ALL_CHECKS, *_REASONS}
    assert named - _CHECKS_IN_KOREAN.keys() == set()
    assert check_text(STEPPING, "en") == STEPPING
    assert check_text(STEPPING, "ko") == _CHECKS_IN_KOREAN[STEPPING]


def test_every_korean_name_is_that_of_a_sentence_in_the_code() -> None:
    folder = Path(manyheads.__file__).parent
    code = "".join(
        path.read_text("utf-8") for path in [*(folder / "doctor").rglob("*.py"), *(folder / "runs").glob("*.py")]
    )
    code = code.replace("{SHORTEST}", "16")
    assert [name for name in _CHECKS_IN_KOREAN if f'"{name}"' not in code] == []


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
