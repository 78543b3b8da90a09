"""`doctor CONFIG` has no finding for a sound configuration, and names faults of settings and of manyheads' code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checks.test_text import make_splits, write_splits
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.tolerances import within

from manyheads.checkpoint import RunDirectory
from manyheads.checks import start
from manyheads.cli.main import run
from manyheads.cli.recipes import _describe
from manyheads.config.schema import Config
from manyheads.data.training_text import read_corpus
from manyheads.reports import SilentListener
from manyheads.runs import examine_config as module
from manyheads.runs.examine_config import examine_config
from manyheads.training.distributed import ALONE
from manyheads.training.registry import prepare_task
from transformer_doctor.report import Diagnosis

pytestmark = pytest.mark.usefixtures("short_examinations")
SECTIONS: dict[str, dict[str, Any]] = {
    "tokenizer": {"vocab_size": 260},
    "model": {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
    "training": {
        "epochs": 10, "batch_tokens": 800, "learning_rate": 5e-3, "warmup_steps": 30, "save_every": 50,
        "precision": "fp32",
        "device": "cpu",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Return a configuration of a small model on files with text of the built-in grammar."""
    return configured(write_splits(tmp_path_factory.mktemp("corpus"), make_splits()))


def configured(config: Config, **changes: dict[str, Any]) -> Config:
    """Return the configuration with the small sections, and changes to them."""
    sections = {name: section | changes.get(name, {}) for name, section in SECTIONS.items()}
    return Config.model_validate({"data": config.data.model_dump() | changes.get("data", {}), **sections})


def names(found: Diagnosis) -> dict[str, str]:
    return {finding.name: finding.severity for finding in found.report.findings}


def test_a_sound_configuration_has_no_finding_and_its_plan_is_described(corpus: Config) -> None:
    found = examine_config(corpus, "sound")
    assert names(found) == {}
    assert found.exit_code == 0
    assert found.facts["text"].startswith("train 1,200 pairs read")
    assert "10.0 epochs" in found.facts["updates"]
    assert len(found.report.asked) > 20


@pytest.mark.slow
def test_the_time_includes_validation(corpus: Config) -> None:
    limited = configured(corpus, training={"epochs": None, "steps": 10**6, "max_minutes": 1, "save_every": 10**6})
    found = examine_config(limited, "limited")
    assert re.search(r"s an update here, about \d+ seconds with validations of \d+\.\d s", found.facts["time"])


def test_the_times_are_those_without_other_programs(corpus: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure eight seconds an update where a quarter of the processors is free."""
    monkeypatch.setattr(module, "free_share", lambda device: 0.25)
    monkeypatch.setattr(module, "measure_update", lambda *arguments: (8.0, 1.0, 100.0))
    monkeypatch.setattr(module, "_validation_seconds", lambda *arguments: 4.0)
    time = examine_config(configured(corpus, training={"epochs": None, "steps": 100}), "busy").facts["time"]
    assert time.startswith("2.00 s an update here, about 3.4 minutes with validations of 1.0 s; more while")
    assert time.endswith("use 75% of the processors")


def test_memory_saved_for_the_backward_pass_is_estimated_from_a_few_rows(
    corpus: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(corpus, model={"d_model": 64, "d_ff": 128}, training={"batch_tokens": 4_000})
    directory = RunDirectory(tmp_path / "run")
    task = prepare_task(config, directory, read_corpus(config, directory.path), SilentListener())
    model, updates = task.model().train(), task.updates(ALONE)
    (part,) = updates.batches(0, updates.heaviest(), updates.epoch(0)[updates.heaviest()])
    assert part.num_positions > 4 * start._MEASURED_POSITIONS
    estimated = start._saved_for_backward(model, task.objective(model), part, torch.device("cpu"), "fp32")
    monkeypatch.setattr(start, "_MEASURED_POSITIONS", 10**9)
    assert start._saved_for_backward(model, task.objective(model), part, torch.device("cpu"), "fp32") == within(
        estimated, 0.2 * estimated
    )
    # at the least: the input of every matrix product of every layer, in float32
    assert estimated > 4 * part.num_positions * (64 * 4 + 128)


def test_classifiers_and_language_models_are_examined_too(tmp_path: Path) -> None:
    longer = {"steps": 200, "learning_rate": 5e-3, "schedule": "constant"}
    labelled = labelled_config(write_labelled(tmp_path / "labelled", train=400), training=longer)
    found = names(examine_config(labelled, "labelled"))
    assert not found.keys() - {"few-validation-texts", "near-copies-in-train"}, found
    play = make_language_config(write_play(tmp_path / "play"), training=longer)
    found = names(examine_config(play, "play"))
    assert not found.keys() - {"held-out-in-train", "very-many-epochs"}, found


def write_config(config: Config, path: Path) -> Path:
    path.write_text("\n".join(_describe(config)), encoding="utf-8")
    return path


def test_the_doctor_command_prints_one_json_document_and_returns_1_for_an_error(
    corpus: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of the plan and one of the text are both named."""
    path = write_config(corpus, tmp_path / "mine.toml")
    settings = ["training.learning_rate=0.5", "data.max_length=11"]
    assert run(["doctor", str(path), "--json", *(word for setting in settings for word in ("--set", setting))]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["subject"] == str(path)
    assert not document["ok"]
    explained = {finding["name"]: finding["explain"] for finding in document["findings"]}
    assert {"rate-too-high", "cut-or-dropped"} <= explained.keys()
    assert all(explain == f"manyheads doctor --explain {name}" for name, explain in explained.items())
    assert {"text", "model", "updates", "time", "memory"} <= document["facts"].keys()


def test_a_wrong_command_line_and_missing_text_have_their_usual_exit_codes(
    corpus: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", "no-such-recipe"]) == 2
    assert run(["doctor", "--set", "data.root=x"]) == 2
    assert run(["doctor", str(tmp_path)]) == 3  # a folder that is no run
    path = write_config(corpus, tmp_path / "mine.toml")
    assert run(["doctor", str(path), "--set", f"data.root={tmp_path}"]) == 3
    assert "error: " in capsys.readouterr().err
