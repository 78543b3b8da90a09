"""The texts of both languages hold the same names and the same placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer_doctor
from korean_evidence import disagreement, stale_sentences
from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.checks import learning
from transformer_doctor.checks.behaviour import OUTPUT_CHECKS
from transformer_doctor.checks.stepping import STEPPING
from transformer_doctor.museum import TEXTS as MUSEUM_TEXTS
from transformer_doctor.texts import (
    FINDING_TEXTS,
    LANGUAGES,
    SENTENCES_IN_KOREAN,
    placeholders,
    translate,
)


def test_both_files_of_the_package_hold_the_same_texts() -> None:
    assert tuple(FINDING_TEXTS) == LANGUAGES == ("en", "ko")
    assert disagreement(FINDING_TEXTS) == disagreement(MUSEUM_TEXTS) == []


def test_every_check_and_every_reason_has_a_korean_name() -> None:
    """Check the sentences of the tables and the sentences written in the code."""
    training = {text for name, text in vars(learning).items() if name.isupper() and isinstance(text, str)}
    named = {check.sentence for check in OUTPUT_CHECKS} | {STEPPING} | training
    assert named - SENTENCES_IN_KOREAN.keys() == set()


def test_no_korean_sentence_is_stale() -> None:
    files = Path(transformer_doctor.__file__).parent.rglob("*.py")
    named = {known.check for known in CATALOGUE.values()}
    assert set(stale_sentences(SENTENCES_IN_KOREAN, files)) <= named


def test_a_translation_has_the_placeholders_of_its_sentence() -> None:
    assert all(placeholders(english) == placeholders(korean) for english, korean in SENTENCES_IN_KOREAN.items())


SENTENCES = {
    "{count} of {all} rows": "행 {all}개 중 {count}개",
    "{part} changes by {share}": "{part}이(가) {share}만큼 바뀝니다",
    "{what} by {share}": "{share}: {what}",
    "the score": "점수",
    "seen: {text}": "관찰: {text}",
}


@pytest.mark.parametrize(
    ("text", "korean"),
    [
        ("the score", "점수"),
        ("2 of 3 rows", "행 3개 중 2개"),
        ("the score changes by 5 %", "점수이(가) 5 %만큼 바뀝니다"),
        ("unknown", "unknown"),
        ("unknown; other, and more", "unknown; other, and more"),
        ("unknown; 2 of 3 rows, the score", "unknown. 행 3개 중 2개, 점수"),
        ("2 of 3 rows. 4 of 5 rows", "행 3개 중 2개. 행 5개 중 4개"),
        ("seen: 2 of 3 rows; the score", "관찰: 행 3개 중 2개. 점수"),
        ("{x} of {y} rows", "행 {y}개 중 {x}개"),
    ],
)
def test_a_text_is_translated_whole_else_clause_by_clause(text: str, korean: str) -> None:
    assert translate(text, SENTENCES) == korean
