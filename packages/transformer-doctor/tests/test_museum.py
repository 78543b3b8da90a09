"""The doctor names the defect of every exhibit, and finds nothing after its fix of one line."""

from __future__ import annotations

import pytest

from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.errors import UsageError
from transformer_doctor.museum import EXHIBIT_TEXTS, EXHIBITS, exhibit, perform, play
from transformer_doctor.texts import LANGUAGES

NAMES = [one.name for one in EXHIBITS]
# Further findings that the line of an exhibit causes.
FURTHER_FINDINGS = {
    "tested-on-training-data": {"unseeded-split"},
    "end-kept-on-cut-targets": {"silent-cut"},
    "not-bleu": {"errors-swallowed"},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_doctor_names_the_defect_and_finds_nothing_after_the_fix(name: str) -> None:
    one = exhibit(name)
    before, after = perform(one.source, name), perform(one.fixed_source, name)
    assert set(before.report.names) == {name} | FURTHER_FINDINGS.get(name, set()), before.report
    assert not after.report.findings, after.report
    assert len(before.shown) >= 2
    assert before.shown != after.shown


@pytest.mark.parametrize("name", NAMES)
def test_each_fix_changes_one_line(name: str) -> None:
    one = exhibit(name)
    assert len(one.fixes) == 1
    changed = zip(one.source.split("\n"), one.fixed_source.split("\n"), strict=True)
    assert sum(before != after for before, after in changed) == 1


def test_the_eighteen_exhibits_are_catalogued_under_their_numbers() -> None:
    assert [one.number for one in EXHIBITS] == list(range(1, 19))
    assert all(CATALOGUE[one.name].exhibit == one.number for one in EXHIBITS)
    assert {known.exhibit for known in CATALOGUE.values()} - {None} == set(range(1, 19))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_exhibit_has_texts_in_both_languages(language: str) -> None:
    texts = EXHIBIT_TEXTS[language]
    assert list(texts) == NAMES
    korean = [
        any("가" <= letter <= "힣" for letter in text) for one in texts.values() for text in vars(one).values()
    ]
    assert all(korean) if language == "ko" else not any(korean)


@pytest.mark.slow
def test_the_loss_of_unshifted_targets_falls_below_chance_until_the_fix() -> None:
    """The loss falls far below chance on random targets, and stays at chance after the fix."""
    one = exhibit("target-not-shifted")
    losses = [float(perform(text, one.name).shown[-1].split()[-1]) for text in (one.source, one.fixed_source)]
    assert losses[0] < 0.1
    assert losses[1] > 2.9


def test_playing_an_exhibit_shows_the_loss_the_diagnosis_and_the_fix() -> None:
    lines = list(play(exhibit("7"), "ko"))
    assert lines[0].startswith("7. 엉뚱한 값의 제곱근으로 나눈다")
    assert "    - return (scores / math.sqrt(D)).softmax(-1)" in lines
    assert "    + return (scores / math.sqrt(E)).softmax(-1)" in lines
    title = CATALOGUE["scaled-by-model-width"].texts["ko"].title
    assert f"    오류: scaled-by-model-width ({title})" in lines
    assert "통과, " in lines[-1]
    assert lines[-1].endswith(": 고칠 것이 없습니다")


def test_an_unknown_exhibit_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no exhibit 19"):
        exhibit("19")
