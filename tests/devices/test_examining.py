"""`doctor RUN` on a pretended CUDA device: all checks compute on the device, and the report is that of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.devices.pretended import is_pretended, pretended_cuda
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import make_config, write_corpus

from manyheads.checks.subjects import TrainedModel
from manyheads.config.schema import Config
from manyheads.runs import examine_run as module
from manyheads.runs.export import export
from manyheads.runs.train import train
from transformer_doctor.report import Diagnosis

pytestmark = pytest.mark.usefixtures("short_examinations")
CONFIGS: dict[str, Callable[[Path], Config]] = {
    "translation": lambda folder: make_config(write_corpus(folder)),
    "classification": lambda folder: labelled_config(write_labelled(folder)),
    "language-modeling": lambda folder: make_language_config(write_play(folder)),
}


def trained(task: str, folder: Path) -> Path:
    train(CONFIGS[task](folder / "data"), folder / "run")
    return folder / "run"


def examined(run: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Diagnosis, list[bool]]:
    """Examine a run on the pretended device; return the diagnosis, and whether each weight was on the device."""
    original, on_device = module.examine_trained, []

    def examine_trained(model: TrainedModel, *arguments: Any) -> Any:
        on_device.extend(is_pretended(weights) for weights in model.model.parameters())
        return original(model, *arguments)

    monkeypatch.setattr(module, "examine_trained", examine_trained)
    with pretended_cuda():
        return module.examine_run(run, device="cuda"), on_device


@pytest.mark.parametrize("task", CONFIGS)
def test_a_run_is_examined_on_the_device_as_on_the_cpu(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(task, tmp_path)
    if task == "translation" and find_spec("ctranslate2"):
        export(run, tmp_path / "run-ct2", "ctranslate2")
    expected = module.examine_run(run)
    found, on_device = examined(run, monkeypatch)
    assert on_device
    assert all(on_device)
    assert [finding.name for finding in found.report.findings] == [
        finding.name for finding in expected.report.findings
    ]
    assert found.facts == expected.facts
