"""The proof of a tuning: what is compared, and which differences speak against the tuned model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runs.parts import SENTENCES, make_config
from tests.training.parts import CollectingListener

from manyheads.data.corpus import Pair
from manyheads.evaluation.challenge import Case, Group
from manyheads.runs.proof import lines_of, prove
from manyheads.runs.tune_text import TuningText
from manyheads.tasks.translation.translator import Translator
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import TokenizerPair

PAIRS = [Pair(german, f"{english} today .", line) for line, (german, english) in enumerate(SENTENCES, start=1)]
CORRECTIONS, HELD_OUT, GENERAL = PAIRS[:8], PAIRS[8:12], PAIRS[12:]


class Fixed(Translator):
    """A translator that knows the output of each source."""

    def __init__(self, outputs: dict[str, str]) -> None:
        """Load no model."""
        self.outputs = outputs
        self.config = make_config(Path("nowhere"))
        self.tokenizers = TokenizerPair(*[ByteTokenizer(lowercase=False)] * 2, joint=True)

    def translate(self, texts: Any, **options: Any) -> Any:
        return [SimpleNamespace(translation=self.outputs.get(text, ""), source=text, sentences=1) for text in texts]


@pytest.fixture(autouse=True)
def without_challenge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.runs.proof.challenge_groups", lambda *arguments, **options: [])


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


@pytest.mark.parametrize(("general", "reasons"), [(GENERAL, 0), ([], 1)])
def test_without_general_text_the_challenge_lines_decide(
    general: list[Pair], reasons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [Group("single words", [Case(pair.source) for pair in PAIRS])]
    monkeypatch.setattr("manyheads.runs.proof.challenge_groups", lambda *arguments, **options: groups)
    right = {pair.source: "a dog" for pair in PAIRS}
    repeated = {pair.source: "a dog dog" for pair in PAIRS[12:]}
    pairs = [pair._replace(target="a dog") for pair in general]
    text = TuningText(CORRECTIONS, general=[pair._replace(source=f"{pair.source} .") for pair in pairs])
    right |= {pair.source: "a dog" for pair in text.general}
    found = prove(Fixed(right), Fixed(right | repeated), text, CollectingListener())["reasons"]
    assert bool(found) == bool(reasons)
    assert all(reason.startswith("challenge lines: ") for reason in found)
