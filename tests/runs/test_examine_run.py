"""`doctor RUN` has no finding for a trained translator, and names faults of its weights, its log or our code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import SENTENCES, make_config, write_split
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.checks.decoding import _compare_decoding
from manyheads.checks.subjects import TrainedTranslator
from manyheads.cli.main import run as program
from manyheads.decoding.model import InferenceModel
from manyheads.inference.engines import AutoEngine
from manyheads.runs.examine_run import _trained_model, examine_run
from manyheads.runs.export import export
from manyheads.runs.train import train
from manyheads.tensors.pairs import Batch, make_batch
from manyheads.text.tokenizer import BOS, EOS
from transformer_doctor.report import Diagnosis

pytestmark = pytest.mark.usefixtures("short_examinations")
TRAINING = {
    "steps": 150, "batch_tokens": 160, "learning_rate": 0.01, "warmup_steps": 15, "schedule": "linear",
    "save_every": 50, "valid_sentences": 0,
}  # fmt: skip
MODEL = {"d_model": 32, "d_ff": 64, "dropout": 0.0, "tied_embeddings": "none"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, training_seed: int) -> Path:
    """Return a translator that memorized 48 sentences, which are also its validation set."""
    folder = tmp_path_factory.mktemp("trained")
    for name in ("train", "valid"):
        write_split(folder, name, SENTENCES)
    data = {"drop_overlap": False, "test": None}
    config = make_config(folder, data=data, model=MODEL, training=TRAINING | {"seed": training_seed})
    train(config, folder / "run")
    return folder / "run"


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """Return a copy of the run that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def names(found: Diagnosis) -> dict[str, str]:
    return {finding.name: finding.severity for finding in found.report.findings}


def serious(found: Diagnosis) -> set[str]:
    return {finding.name for finding in found.report.findings if finding.severity != "note"}


def test_a_trained_run_has_no_serious_finding(trained: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*")}
    found = examine_run(trained)
    assert serious(found) == set(), found.lines()
    assert found.exit_code == 0
    assert found.facts["outputs"].startswith("BLEU ")
    assert len(found.report.asked) > 20
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*")} == before


def change_weights(run: Path, change: Callable[[dict[str, Tensor]], None]) -> Path:
    path = run / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    return run


def zero_cross_attention(tensors: dict[str, Tensor]) -> None:
    """Set the output of cross-attention to zero."""
    for name in tensors:
        if "cross_attention.project_out" in name:
            tensors[name].zero_()


def nan_weight(tensors: dict[str, Tensor]) -> None:
    tensors["encoder_norm.weight"][3] = torch.nan


def random_start(tensors: dict[str, Tensor]) -> None:
    """Give the start mark a random embedding that training never saw."""
    torch.manual_seed(1)
    tensors["target_embedding.tokens.weight"][BOS] = torch.randn(32)


def no_end(tensors: dict[str, Tensor]) -> None:
    tensors["output.bias"][EOS] = -50.0


def even_attention(tensors: dict[str, Tensor]) -> None:
    """Set all queries and keys to zero, so that all heads attend evenly."""
    for name, tensor in tensors.items():
        if "project_in" in name:
            tensor[: 2 * len(tensor) // 3].zero_()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((zero_cross_attention, no_end), {"source-ignored", "same-output", "never-ends", "too-long"}),
        ((random_start, even_attention), {"first-token-not-learned", "idle-heads"}),
    ],
)
def test_faults_planted_in_the_weights_are_named(
    copy: Path, changes: list[Callable[[dict[str, Tensor]], None]], expected: set[str]
) -> None:
    for change in changes:
        change_weights(copy, change)
    found = examine_run(copy)
    assert expected <= serious(found), found.lines()
    assert found.exit_code == 1


def test_a_target_that_was_not_shifted_in_training_is_named(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, training_seed: int
) -> None:
    """The logged loss is that of copying; with shifted targets the weights predict nothing."""

    def unshifted(*rows: Any, **marks: Any) -> Batch:
        made = make_batch(*rows, **marks)
        return replace(made, target_in=made.target_out)

    for name in ("training.batch_sources", "training.objective"):
        monkeypatch.setattr(f"manyheads.{name}.make_batch", unshifted)
    data = {"drop_overlap": False, "test": None}
    training = TRAINING | {"seed": training_seed}
    config = make_config(trained.parent, data=data, model=MODEL, training=training)
    assert train(config, tmp_path / "run").best < 0.5
    monkeypatch.undo()
    found = examine_run(tmp_path / "run")
    assert "training-differs" in serious(found), found.lines()


def test_a_cache_that_counts_positions_from_1_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = InferenceModel.position_encoding
    monkeypatch.setattr(InferenceModel, "position_encoding", lambda self, position: right(self, position + 1))
    assert {"cache-differs", "score-differs"} <= serious(examine_run(trained))
    run = RunDirectory(trained)
    translator = _trained_model(run, run.config(), None)
    assert isinstance(translator, TrainedTranslator)
    decoding = _compare_decoding(translator, [german for german, _ in SENTENCES[:5]])
    assert decoding.cache > 0.1
    assert decoding.score > 0.1


def test_padding_that_is_attended_to_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "manyheads.model.encoder_decoder.source_mask",
        lambda ids, pad, unread: torch.ones_like(ids, dtype=torch.bool)[:, None, None],
    )
    found = examine_run(trained)
    assert {"no-source-padding-mask", "loss-depends-on-batching"} <= serious(found), found.lines()


def test_a_search_whose_outputs_depend_on_the_batch_is_named(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = AutoEngine.search

    def swapping_search(self: AutoEngine, rows: Any, options: Any, *cancelled: Any) -> Any:
        found = right(self, rows, options, *cancelled)
        return [found[1], found[0], *found[2:]] if len(found) > 1 and options.batch_tokens > 1 else found

    monkeypatch.setattr(AutoEngine, "search", swapping_search)
    assert "depends-on-the-batch" in serious(examine_run(trained))


def test_a_beam_of_1_that_is_not_greedy_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from manyheads.decoding.greedy import greedy_search

    def short_greedy_search(stepper: Any, options: Any, max_lengths: Any, special: Any) -> Any:
        return greedy_search(stepper, options, max_lengths * 0 + 2, special)

    monkeypatch.setattr("manyheads.checks.decoding.greedy_search", short_greedy_search)
    assert "beam-one-differs" in serious(examine_run(trained))


def test_faults_in_the_log_are_named(copy: Path) -> None:
    """Only a newline ends a record: sample sentences may hold other line separators."""
    path = copy / "metrics.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = [record for record in records if record["kind"] == "validation"][-1] | {"sample": ["a\u2028b", "c", "d"]}
    worse = [{**last, "step": last["step"] + offset, "loss": last["loss"] + 3} for offset in (1, 2)]
    lines = [json.dumps(record, ensure_ascii=False) for record in [*records, *worse]]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = examine_run(copy)
    assert serious(found) == {"over-fitting"}
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records[:3]) + '{"kind": "st', encoding="utf-8")
    assert names(examine_run(copy))["unfinished"] == "note"


def test_a_run_without_its_text_is_examined_without_the_checks_of_text(copy: Path) -> None:
    found = examine_run(copy, overrides=[f"data.root={copy}"])
    assert found.facts["text"].startswith("not on this machine")
    assert serious(found) == set()
    assert "outputs" not in found.facts


def test_an_export_beside_the_run_is_compared(copy: Path) -> None:
    pytest.importorskip("ctranslate2")
    export(copy, copy.parent / "run-ct2", "ctranslate2")
    export(copy, copy / "ct2", "ctranslate2")
    found = examine_run(copy)
    assert serious(found) == set()
    assert {"export run-ct2", "export ct2"} <= found.facts.keys()
    change_weights(copy, lambda tensors: tensors["output.bias"].neg_().add_(1).cumsum_(0))
    assert "export-differs" in serious(examine_run(copy))


def test_a_classifier_and_a_language_model_are_examined(tmp_path: Path, training_seed: int) -> None:
    plan = {"steps": 120, "save_every": 60, "learning_rate": 0.01, "schedule": "linear", "warmup_steps": 10}
    quick = plan | {"seed": training_seed}
    labelled = labelled_config(write_labelled(tmp_path / "data", train=300), training=quick)
    train(labelled, tmp_path / "classifier")
    found = examine_run(tmp_path / "classifier")
    assert not serious(found) & {"source-ignored", "no-better-than-guessing", "loss-depends-on-batching"}, (
        found.lines()
    )

    def zero_output(tensors: dict[str, Tensor]) -> None:
        tensors["output.weight"].zero_()

    found = examine_run(change_weights(tmp_path / "classifier", zero_output))
    assert {"source-ignored", "no-better-than-guessing", "class-never-said"} <= serious(found)

    play = make_language_config(write_play(tmp_path / "play"), training=quick)
    train(play, tmp_path / "writer")
    found = examine_run(tmp_path / "writer")
    assert not serious(found) & {"context-ignored", "cache-differs", "loss-depends-on-batching"}, found.lines()

    def zero_attention(tensors: dict[str, Tensor]) -> None:
        for name in tensors:
            if "attention.project_out" in name:
                tensors[name].zero_()

    assert "context-ignored" in serious(examine_run(change_weights(tmp_path / "writer", zero_attention)))


def test_the_doctor_command_examines_a_run(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program(["doctor", str(copy)]) == 0
    assert "checks passed, " in capsys.readouterr().out
    assert program(["doctor", str(change_weights(copy, nan_weight)), "--json"]) == 1
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["weights-not-finite"]["evidence"] == "1 tensors: encoder_norm.weight"
