"""The mean of the last checkpoints is written as a separate run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tests.tolerances import assert_close

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.errors import RunError
from manyheads.inference.translation.translator import Translator
from manyheads.runs.resume import average


@pytest.fixture
def run(averaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(averaged, tmp_path / "run"))


@pytest.mark.parametrize(("last", "steps"), [(None, [4, 8, 12]), (2, [8, 12]), (3, [4, 8, 12]), (1, [12])])
def test_the_averaged_weights_are_the_mean_of_the_last_checkpoints(
    run: Path, last: int | None, steps: list[int]
) -> None:
    out = average(run, last=last)
    found = load_file(out / "model.safetensors")
    models = [TrainingRun(run).checkpoints.weights(step) for step in steps]
    assert found.keys() == models[0].keys()
    for name, tensor in found.items():
        expected = sum(model[name].double() for model in models) / len(models)
        assert_close(tensor, expected)


def test_the_new_directory_is_a_run_that_translates(run: Path) -> None:
    out = average(run)
    assert out == run.with_name("run-averaged")
    assert RunDirectory.existing(out).config() == RunDirectory(run).config()
    assert TrainingRun(out).checkpoints.steps() == []
    assert RunDirectory(out).environment() == RunDirectory(run).environment()
    (found,) = Translator.load(out).translate(["der Hund läuft"])
    assert len(found.hypotheses) == 1


def test_averaging_leaves_the_run_unchanged(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    average(run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_an_existing_output_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    for out in (tmp_path / "taken", run):
        with pytest.raises(RunError, match=r"exists\. Choose another place") as caught:
            average(run, out=out)
        assert str(out) in str(caught.value)
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["mine"]


def test_more_checkpoints_than_exist_are_refused_with_both_numbers(run: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"keeps 3 checkpoints, 4 are wanted"):
        average(run, last=4, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_without_checkpoints_is_refused(run: Path) -> None:
    out = average(run)
    with pytest.raises(RunError, match="keeps 0 checkpoints"):
        average(out)


def test_a_damaged_checkpoint_is_named_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    path = run / "checkpoints" / "step-8" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(RunError, match="missing or damaged") as caught:
        average(run, out=tmp_path / "out")
    assert str(path) in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_run_without_its_environment_file_can_be_averaged(run: Path) -> None:
    (run / "environment.json").unlink()
    assert Translator.load(average(run)).translate(["der Hund"])
