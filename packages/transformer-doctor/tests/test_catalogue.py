"""The findings of the doctor in both languages, and the command that explains them."""

from __future__ import annotations

import pytest

from korean_evidence import check_finding_texts
from transformer_doctor.catalogue import CATALOGUE, explain, in_case, model_finding
from transformer_doctor.checks.masks import _PHRASES
from transformer_doctor.texts import FINDING_TEXTS, LANGUAGES, SENTENCES_IN_KOREAN, Language

ALL = [*CATALOGUE.values()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_names_the_command_that_explains_it(language: Language) -> None:
    name = model_finding("round-trip", "x").explain.split()[-1]
    explained = explain(name)
    assert len(explained) == 1
    for known in explained:
        text, printed = known.texts[language], "\n".join(known.lines(language))
        assert all(part in printed for part in (name, text.title, text.meaning, text.cause, text.cure))


def test_every_finding_can_be_explained() -> None:
    for known in ALL:
        assert known in explain(known.name)
        assert "{" not in "\n".join(known.lines())


def test_a_finding_of_a_model_names_a_check_that_reports_list() -> None:
    """Every check of a report has its Korean text."""
    assert {known.check for known in ALL} <= set(SENTENCES_IN_KOREAN)


def test_every_finding_has_a_korean_text_with_the_names_of_the_english_one() -> None:
    check_finding_texts(ALL)


@pytest.mark.parametrize("case", FINDING_TEXTS["en"]["cases"])
def test_a_case_replaces_cause_and_cure_in_both_languages_and_keeps_the_title(case: str) -> None:
    usual = model_finding("mask-fill", "seen")
    finding = in_case(usual, case)
    assert (finding.name, finding.evidence) == ("mask-fill", "seen")
    assert finding.cause == FINDING_TEXTS["en"]["cases"][case]["cause"]
    assert finding.translate("ko").cure == FINDING_TEXTS["ko"]["cases"][case]["cure"]
    assert finding.texts["ko"].title == usual.texts["ko"].title


def test_every_fault_of_a_mask_has_a_case_unless_the_finding_itself_fits() -> None:
    cases = {name.removeprefix("mask-") for name in FINDING_TEXTS["en"]["cases"] if name.startswith("mask-")}
    assert set(_PHRASES) - cases == {"absent", "queries", "fill"}
