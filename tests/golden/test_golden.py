"""Runs of every earlier format can be loaded: they translate, and resume training."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.runs.parts import metrics
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train

GOLDEN = sorted(Path(__file__).parent.glob("format-*"))


def expected(golden: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((golden / "expected.json").read_text(encoding="utf-8"))
    return found


def test_there_are_golden_runs() -> None:
    assert GOLDEN


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_run_of_an_old_format_gives_the_same_translations(golden: Path) -> None:
    results = expected(golden)
    found = Translator.load(golden / "run").translate(results["sources"])
    assert [output.translation for output in found] == results["translations"]
    assert [output.score for output in found] == approx(results["scores"])


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_run_of_an_old_format_resumes_with_the_same_losses(golden: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(golden, tmp_path / "golden"))
    config = RunDirectory(copied / "run").config()
    config = config.model_copy(update={"data": config.data.model_copy(update={"root": str(copied / "corpus")})})
    listener = CollectingListener()
    train(config, copied / "run", listener=listener)
    assert "resuming after step 90" in listener.messages
    found = {str(record["step"]): record["loss"] for record in metrics(copied / "run") if record["kind"] == "step"}
    assert found == approx(expected(golden)["losses"])


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_newer_format_is_refused_by_its_number(golden: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(golden, tmp_path / "golden")) / "run"
    content = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    content["format"] += 100
    (copied / "config.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunError, match=str(content["format"])):
        Translator.load(copied)
