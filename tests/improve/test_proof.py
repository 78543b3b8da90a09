"""The proof of a tuning: what is compared, and which differences speak against the tuned model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runs.parts import SENTENCES, make_config
from tests.training.parts import CollectingListener

from bitext.pairs import Pair
from manyheads.evaluation.challenge import Case, Group
from manyheads.improve.proof import _reasons, lines_of, prove
from manyheads.improve.tune_text import CORRECTIONS as CORRECTIONS_FILE
from manyheads.improve.tune_text import GENERAL as GENERAL_FILE
from manyheads.improve.tune_text import TuningText
from manyheads.inference.translation.translator import Translator
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import TokenizerPair

PAIRS = [Pair(german, f"{english} today .", line) for line, (german, english) in enumerate(SENTENCES, start=1)]
CORRECTIONS, HELD_OUT, GENERAL = PAIRS[:8], PAIRS[8:12], PAIRS[12:]


class Fixed(Translator):
    """A translator that knows the output of each source."""

    def __init__(self, outputs: dict[str, str], **settings: Any) -> None:
        """Load no model; `settings` are those of the section data."""
        config = make_config(Path("nowhere"))
        config = config.model_copy(update={"data": config.data.model_copy(update=settings)})
        tokenizers = TokenizerPair(*[ByteTokenizer(lowercase=False)] * 2, joint=True)
        vars(self).update(outputs=outputs, config=config, tokenizers=tokenizers)

    def translate(self, texts: Any, **options: Any) -> Any:
        return [SimpleNamespace(translation=self.outputs.get(text, ""), source=text, sentences=1) for text in texts]


@pytest.fixture(autouse=True)
def without_challenge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.improve.proof.challenge_groups", lambda *arguments, **options: [])


def proof(change: dict[str, str], *, before: dict[str, str] | None = None, own: bool = False) -> dict[str, Any]:
    """Return the proof of a model that says the references, with some outputs changed."""
    right = {pair.source: pair.target for pair in PAIRS}
    text = TuningText(CORRECTIONS, HELD_OUT, general=GENERAL, own=own)
    return prove(Fixed(right | (before or {})), Fixed(right | change), text, CollectingListener())


def test_a_fall_of_general_text_is_a_reason_with_the_lines_that_got_worse() -> None:
    found = proof({pair.source: "nothing" for pair in GENERAL[:3]})
    (reason,) = found["reasons"]
    assert reason.startswith("general text: BLEU falls by")
    assert {example["source"] for example in found["worse"]} == {pair.source for pair in GENERAL[:3]}
    assert all(
        example["after"] == "nothing" != example["before"] == example["reference"] for example in found["worse"]
    )
    report = "\n".join(lines_of(found))
    assert f"  worse: {GENERAL[0].source}" in report
    assert "reference: " in report


def test_better_corrections_and_equal_general_text_are_no_reason() -> None:
    wrong = {pair.source: pair.target.replace("dog", "cat") for pair in (*CORRECTIONS, *HELD_OUT)}
    found = proof({}, before=wrong)
    assert found["reasons"] == []
    assert found["worse"] == []
    assert found["corrections"]["bleu"]["difference"] > 0
    assert found["general"]["bleu"]["difference"] == 0
    changed = sum("dog" in pair.target for pair in CORRECTIONS)
    assert found["taken_up"]["corrections"] == {"changed": changed, "right": changed}


def test_a_tiny_fall_counts_only_if_it_is_more_than_chance() -> None:
    long = [
        Pair(f"{pair.source} {number}", " ".join([pair.target] * 5), number) for number, pair in enumerate(PAIRS)
    ]
    many = [Pair(f"{pair.source} {copy}", pair.target, copy) for copy in range(8) for pair in long]
    right = {pair.source: pair.target for pair in many}
    one = {many[0].source: many[0].target.replace("today .", "today", 1)}
    text = TuningText(CORRECTIONS, general=many)
    found = prove(Fixed(right), Fixed(right | one), text, CollectingListener())
    assert -0.3 < found["general"]["bleu"]["difference"] < 0
    assert found["reasons"] == []


def test_own_translations_are_no_references_and_only_large_changes_count() -> None:
    few = {pair.source: "nothing" for pair in GENERAL[:1]}
    assert proof(few)["reasons"]
    assert proof(few, own=True)["reasons"] == []
    (reason,) = proof({pair.source: "nothing" for pair in GENERAL[:20]}, own=True)["reasons"]
    assert "translated otherwise" in reason


def test_held_out_corrections_that_fall_more_than_by_chance_are_a_reason() -> None:
    assert proof({pair.source: "nothing" for pair in CORRECTIONS})["reasons"] == []
    (reason,) = proof({pair.source: "nothing" for pair in HELD_OUT})["reasons"]
    assert reason.startswith("held-out corrections: BLEU falls by")


@pytest.mark.parametrize("general", [GENERAL, []], ids=["general text", "none"])
@pytest.mark.parametrize(
    ("lines", "lost", "refused"),
    [
        (100, 1, False),
        (100, 2, True),
        (20, 1, False),
        (20, 2, True),
        (400, 4, False),
        (400, 5, True),
        (20, -3, False),
    ],
)
@pytest.mark.parametrize(
    ("case", "good", "bad"), [(Case("Wort"), "a dog", "a dog dog"), (Case("7", kept=("7",)), "no 7", "no")]
)
def test_no_row_of_challenge_lines_may_lose_more_than_a_point_and_a_line(
    case: Case, good: str, bad: str, lines: int, lost: int, refused: bool, general: list[Pair], monkeypatch: Any
) -> None:
    cases = [replace(case, source=f"{case.source} {number}") for number in range(lines)]
    monkeypatch.setattr(
        "manyheads.improve.proof.challenge_groups", lambda *arguments, **options: [Group("single words", cases)]
    )
    right = {pair.source: pair.target for pair in PAIRS} | {case.source: good for case in cases}
    changed = right | {case.source: bad for case in cases[: abs(lost)]}
    before, after = (right, changed) if lost > 0 else (changed, right)
    text = TuningText(CORRECTIONS, general=general)
    found = prove(Fixed(before), Fixed(after), text, CollectingListener())
    assert bool(found["reasons"]) == refused
    assert all(reason.startswith("challenge lines: ") for reason in found["reasons"])
    assert any("single words" in line for line in lines_of(found)) == refused


@pytest.mark.parametrize(("lost", "refused"), [(5, False), (6, True)])
def test_a_figure_that_was_bad_before_may_lose_a_tenth(lost: int, refused: bool, monkeypatch: Any) -> None:
    cases = [Case(f"Wort {number}") for number in range(50)]
    monkeypatch.setattr(
        "manyheads.improve.proof.challenge_groups", lambda *arguments, **options: [Group("single words", cases)]
    )
    right = {pair.source: pair.target for pair in PAIRS}
    before, after = (
        Fixed(right | {case.source: "a dog dog" if number < bad else "a dog" for number, case in enumerate(cases)})
        for bad in (20, 20 + lost)
    )
    found = prove(before, after, TuningText(CORRECTIONS, general=GENERAL), CollectingListener())
    assert bool(found["reasons"]) == refused


def test_challenge_lines_are_made_of_general_text_and_not_of_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned as it was written changes the usual form alone, with which the changed form is compared."""
    configs = []
    monkeypatch.setattr(
        "manyheads.improve.proof.challenge_groups", lambda config, *others, **options: configs.append(config) or []
    )
    tuned = Fixed({}, train=CORRECTIONS_FILE, valid="valid.tsv", more=("replay.tsv",), test=GENERAL_FILE)
    prove(Fixed({}), tuned, TuningText(CORRECTIONS, HELD_OUT, general=GENERAL), CollectingListener())
    (config,) = configs
    assert (config.data.train, config.data.valid) == ("replay.tsv", GENERAL_FILE)


def test_challenge_lines_of_a_model_that_does_not_translate_yet_are_no_reason() -> None:
    row = {"group": "single words", "figure": "repeated", "before": 0.5, "after": 0.9, "worse": True}
    scores = {
        name: {"score": score, "baseline": score, "difference": 0.0, "significant": False}
        for name, score in (("bleu", 0.1), ("chrf", 3.0))
    }
    assert not list(_reasons({"general": scores, "challenge": [row]}, own_translations=False))
    scores["bleu"]["baseline"] = 30.0
    assert list(_reasons({"general": scores, "challenge": [row]}, own_translations=False))
