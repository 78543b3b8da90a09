"""The findings of manyheads beside those of models, in both languages, and the command that explains them."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyheads
from korean_evidence import check_finding_texts, disagreement, stale_sentences
from manyheads.checks.catalogue import CATALOGUE, SENTENCES_IN_KOREAN, config_finding, explain, machine_finding
from manyheads.checks.registry import _TRAINED, NEW_TRAINING
from manyheads.checks.text import _LABELS, _LINES, _PAIRS
from manyheads.runs.examine_run import _CURVES, _EXPORTS
from transformer_doctor.texts import LANGUAGES, Language, load_texts

ALL = [known for findings in CATALOGUE.values() for known in findings.values()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_names_the_command_that_explains_it(language: Language) -> None:
    name = config_finding("round-trip", "x").explain.split()[-1]
    explained = explain(name)
    assert [known.subject for known in explained] == ["model", "config"]
    for known in explained:
        text, printed = known.texts[language], "\n".join(known.lines(language))
        assert all(part in printed for part in (name, text.title, text.meaning, text.cause, text.cure))


def test_every_finding_can_be_explained() -> None:
    for known in ALL:
        assert known in explain(known.name)
        assert "{" not in "\n".join(known.lines())


def test_every_check_and_every_reason_has_a_korean_name() -> None:
    checks = [check for table in (NEW_TRAINING, *_TRAINED.values()) for check in table]
    named = {text for check in checks for text in (check.sentence, check.reason) if text}
    named |= {*_PAIRS, *_LABELS, *_LINES, _CURVES, _EXPORTS}
    assert named - SENTENCES_IN_KOREAN.keys() == set()


def test_no_korean_sentence_is_stale() -> None:
    assert stale_sentences(SENTENCES_IN_KOREAN, Path(manyheads.__file__).parent.rglob("*.py")) == []


def test_both_files_hold_the_same_texts() -> None:
    assert disagreement(load_texts("manyheads.checks", "findings")) == []


def test_every_finding_has_a_korean_text_with_the_names_of_the_english_one() -> None:
    check_finding_texts(ALL, alike={("too-many-threads", "cure")})


def test_a_placeholder_is_filled_in_in_both_languages() -> None:
    finding = machine_finding("too-many-threads", "8 threads", processors=2)
    assert finding.cure == finding.translate("ko").cure == "OMP_NUM_THREADS=2"
