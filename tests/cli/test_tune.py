"""`tune`: the options that reach the library, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyheads.cli.main import run
from manyheads.improve.tune import Tuning

PROOF: dict[str, Any] = {
    "taken_up": {},
    "challenge": [],
    "worse": [],
    "reasons": ["general text: BLEU falls by 9.00 (9.50 -> 0.50)"],
}


@pytest.mark.parametrize(("kept", "code"), [("there", 0), ("there.tuning/run", 1)])
def test_the_exit_code_says_whether_the_tuned_model_is_used(
    kept: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Any] = []

    def record(*positional: Any, **options: Any) -> Tuning:
        calls.append((positional, options))
        return Tuning(Path("there"), "mine", Path(kept), {}, PROOF)

    monkeypatch.setattr("manyheads.improve.tune.tune", record)
    options = "--general a.de --general a.en --no-replay --accept --source de --device cpu -q --lang ko"
    assert run(["tune", "mine", "terms.tsv", "-o", "there", *options.split()]) == code
    ((positional, given),) = calls
    assert positional == ("mine", Path("terms.tsv"), Path("there"))
    del given["listener"]
    assert given == {
        "general": (Path("a.de"), Path("a.en")), "replay": False, "accept": True, "source": "de", "target": None,
        "device": "cpu",
    }  # fmt: skip
    assert "판정: 일반 텍스트의 BLEU가 9.00점 낮아졌습니다" in capsys.readouterr().out


def test_the_output_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", "mine", "terms.tsv"]) == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("proof", "own", "words"),
    [
        ({"reasons": []}, False, "no general text was compared"),
        ({"reasons": [], "general": {}}, True, "no references to judge by"),
        ({"reasons": [], "general": {}}, False, "as good as before: use the tuned model"),
    ],
)
def test_the_verdict_says_what_was_compared(proof: dict[str, Any], own: bool, words: str) -> None:
    (verdict,) = Tuning(Path("there"), "mine", Path("there"), {"own": own}, proof).verdict()
    assert words in verdict
