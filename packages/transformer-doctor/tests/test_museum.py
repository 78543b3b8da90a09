"""The doctor names the defect of every exhibit, and finds nothing after its fix of one line."""

from __future__ import annotations

from functools import cache

import pytest

from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.museum import EXHIBITS, FIX, TEXTS, Performance, exhibit, perform, play
from transformer_doctor.texts import LANGUAGES, Language

pytestmark = pytest.mark.usefixtures("few_updates")
NAMES = [entry.name for entry in EXHIBITS]
# Further findings that the line of an exhibit causes.
FURTHER_FINDINGS = {
    "tested-on-training-data": {"unseeded-split"},
    "end-kept-on-cut-targets": {"silent-cut"},
    "not-bleu": {"errors-swallowed"},
}


@cache
def performances(name: str) -> tuple[Performance, Performance]:
    """Return the performances of an exhibit as it is and fixed."""
    entry = exhibit(name)
    return perform(entry.source, name), perform(entry.fixed_source, name)


@pytest.mark.parametrize("name", NAMES)
def test_the_doctor_names_the_defect_and_finds_nothing_after_the_fix(name: str) -> None:
    before, after = performances(name)
    assert set(before.report.names) == {name} | FURTHER_FINDINGS.get(name, set()), before.report
    assert not after.report.findings, after.report
    assert len(before.shown) >= 2
    assert before.shown != after.shown


@pytest.mark.parametrize("name", NAMES)
def test_each_fix_changes_one_line(name: str) -> None:
    entry = exhibit(name)
    assert entry.source.count(FIX) == 1
    changed = zip(entry.source.split("\n"), entry.fixed_source.split("\n"), strict=True)
    assert sum(before != after for before, after in changed) == 1


def test_the_eighteen_exhibits_are_catalogued_under_their_numbers() -> None:
    assert [entry.number for entry in EXHIBITS] == list(range(1, 19))
    assert all(CATALOGUE[entry.name].exhibit == entry.number for entry in EXHIBITS)
    assert {known.exhibit for known in CATALOGUE.values()} - {None} == set(range(1, 19))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_exhibit_has_texts_in_both_languages(language: Language) -> None:
    assert list(TEXTS[language]["exhibits"]) == NAMES
    texts = [exhibit(name).text(language)[part] for name in NAMES for part in ("title", "seen", "wrong", "mend")]
    korean = [any("가" <= letter <= "힣" for letter in text) for text in texts]
    assert all(korean) if language == "ko" else not any(korean)


def test_the_loss_of_unshifted_targets_falls_below_chance_until_the_fix() -> None:
    """The loss falls far below chance on random targets, and stays at chance after the fix."""
    losses = [float(performance.shown[-1].split()[-1]) for performance in performances("target-not-shifted")]
    assert losses[0] < 0.1
    assert losses[1] > 2.9


def test_playing_an_exhibit_shows_the_diagnosis_and_the_fix() -> None:
    chosen = exhibit("12")
    lines = list(play(chosen, "ko"))
    wrong, correct = chosen.fix
    assert lines[0] == f"12. {chosen.text('ko')['title']}"
    assert {f"    - {wrong}", f"    + {correct}"} <= set(lines)
    assert f"    오류: {chosen.name} ({CATALOGUE[chosen.name].texts['ko'].title})" in lines
    assert lines[-1] == "    검사 1개 통과: 고칠 것이 없습니다"
