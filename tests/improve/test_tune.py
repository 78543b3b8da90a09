"""`manyheads tune`: a tuned model takes its place only if the proof shows no harm, or the user accepts it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.improve.test_tune_text import write
from tests.runs.parts import SENTENCES, Interrupting
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.cli.main import run as run_program
from manyheads.errors import RunError, SaveError
from manyheads.improve.tune import TUNING, Tuning, tune
from manyheads.inference.translation.translator import Translator
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import export

GOOD: dict[str, Any] = {"taken_up": {}, "challenge": [], "worse": [], "reasons": []}
BAD = GOOD | {"reasons": ["general text: BLEU falls by 9.00 (10.00 -> 1.00)"]}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten trainings, and let every proof pass."""
    monkeypatch.setattr("manyheads.improve.tune._LEAST_STEPS", 4)
    monkeypatch.setattr("manyheads.improve.tune._MOST_STEPS", 4)
    monkeypatch.setattr("manyheads.improve.tune.prove", lambda *arguments: GOOD)


def hounds(folder: Path) -> Path:
    """Write corrections: the dog becomes a hound."""
    pairs = [(german, english.replace("dog", "hound")) for german, english in SENTENCES if "Hund" in german]
    return write(folder / "hounds.tsv", pairs)


def tuned(model: Path, folder: Path, **options: Any) -> Tuning:
    return tune(str(model), hounds(folder), folder / "tuned", device="cpu", **options)


def same_for_all(folder: Path) -> Path:
    return write(folder / "same.tsv", [(german, "a horse sings") for german, _ in SENTENCES[:30]])


def test_a_harmful_set_is_refused_kept_beside_and_accepted_only_on_demand(
    learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.improve.tune._CHECKS", 1)  # else the training may end before any harm is done
    monkeypatch.setattr("manyheads.improve.tune._RATE", 5e-3)
    arguments = ["tune", str(learned), str(same_for_all(tmp_path)), "-o", str(tmp_path / "tuned"), "--no-replay"]
    assert run_program([*arguments, "--device", "cpu", "-q"]) == 1
    beside = tmp_path / "tuned.tuning" / "run"
    assert not (tmp_path / "tuned").exists()
    steps = RunDirectory(beside).metrics_path.read_text("utf-8")
    corrections, out = same_for_all(tmp_path), tmp_path / "tuned"
    refused = tune(str(learned), corrections, out, replay=False, device="cpu")
    assert RunDirectory(beside).metrics_path.read_text("utf-8") == steps, "not trained again"
    assert (refused.exit_code, refused.kept) == (1, beside)
    general = refused.proof["general"]["bleu"]
    assert general["difference"] < -0.3
    report = "\n".join(refused.lines())
    for words in ("verdict: general text: BLEU falls by", "worse: ", "reference: ", "--accept uses it"):
        assert words in report
    accepted = tune(str(learned), corrections, out, replay=False, accept=True, device="cpu")
    assert (accepted.exit_code, accepted.kept) == (0, out)
    assert not beside.parent.exists()
    assert "accepted by hand" in (out / "README.md").read_text("utf-8")


def test_doubtful_corrections_are_not_trained_on_unless_they_are_accepted(
    untrained: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = "40% of the corrections are copies of their sources"
    monkeypatch.setattr("manyheads.improve.tune.find_doubts", lambda *arguments: [doubt])
    refused = tuned(untrained, tmp_path)
    assert (refused.exit_code, refused.kept) == (1, None)
    assert refused.lines()[0] == f"verdict: {doubt}"
    assert [path.name for path in tmp_path.iterdir()] == ["hounds.tsv"]
    assert tuned(untrained, tmp_path, accept=True).kept == tmp_path / "tuned"


def test_a_tuned_run_needs_no_other_folder_and_says_what_it_is(
    untrained: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "tune",
        str(untrained),
        str(hounds(tmp_path)),
        "-o",
        str(tmp_path / "tuned"),
        "--device",
        "cpu",
        "-q",
    ]
    assert run_program([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["used"]
    assert document["text"]["corrections"] == 8
    assert not (tmp_path / "tuned.tuning").exists()
    out = RunDirectory.existing(tmp_path / "tuned")
    assert out.document(TUNING)["proof"] == document["proof"]
    assert "Tuned from run on 8 corrections beside" in (out.path / "README.md").read_text("utf-8")
    config = out.config()
    assert (config.data.root, config.model.init_from) == (str(out.path / "text"), None)
    assert out.document("languages.json") == RunDirectory(untrained).document("languages.json")
    assert evaluate(out.path, device="cpu").to_json()["sentences"] == 6
    assert [path.name for path in out.path.glob("c*")] == ["config.json"]
    assert run_program([*arguments, "--json"]) == 0, "the same command again shows the same result"
    assert json.loads(capsys.readouterr().out) == document


def test_an_interrupted_tuning_resumes_and_ends_with_the_same_weights(
    untrained: Path, tmp_path: Path, quick: None
) -> None:
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    whole = tuned(untrained, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tuned(untrained, tmp_path / "stopped", listener=Interrupting(validation=2))
    assert not (tmp_path / "stopped" / "tuned").exists()
    resumed = tuned(untrained, tmp_path / "stopped")
    weights = [RunDirectory(result.out).weights() for result in (whole, resumed)]
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_other_things_in_the_place_of_the_result_are_left_alone(
    untrained: Path, tmp_path: Path, quick: None
) -> None:
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "mine").touch()
    with pytest.raises(RunError, match="exists, and is not this tuning"):
        tuned(untrained, tmp_path)
    (tmp_path / "tuned" / "mine").unlink()
    with pytest.raises(KeyboardInterrupt):
        tuned(untrained, tmp_path, listener=Interrupting(validation=1))
    with pytest.raises(RunError, match="a tuning of another model"):
        tuned(untrained, tmp_path, replay=False)
    tuned(untrained, tmp_path)
    with pytest.raises(RunError, match="exists, and is not this tuning"):
        tuned(untrained, tmp_path, replay=False)


@pytest.mark.parametrize("name", ["plan.json", TUNING])
def test_a_full_disk_is_one_error_and_leaves_no_run(
    name: str, untrained: Path, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        path.write_bytes(content)

    with monkeypatch.context() as patch:
        patch.setattr("manyheads.improve.tune.write_atomically", full)
        with pytest.raises(SaveError, match="Free some space"):
            tuned(untrained, tmp_path)
    assert not (tmp_path / "tuned").exists()
    assert tuned(untrained, tmp_path).exit_code == 0, "the same command goes on"


@pytest.mark.parametrize(("to", "name"), [("argos", "de-en.argosmodel"), ("ctranslate2", "exported")])
def test_an_export_is_imported_tuned_and_exported_again(
    to: str, name: str, untrained: Path, tmp_path: Path, quick: None
) -> None:
    pytest.importorskip("ctranslate2")
    export(untrained, tmp_path / name, to)
    listener = CollectingListener()
    result = tuned(tmp_path / name, tmp_path, listener=listener)
    assert any(f"{name}: imported" in message for message in listener.messages)
    assert result.exit_code == 0
    assert Translator.load(result.out, device="cpu").translate(["der Hund"])[0].translation is not None
    export(result.out, tmp_path / "again.argosmodel", "argos")
