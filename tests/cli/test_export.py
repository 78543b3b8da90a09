"""`export` and `import`: where they write, and the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyheads.cli.main import run
from manyheads.errors import ManyheadsError


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[object, ...], dict[str, Any]]]:
    """Return the recorded arguments of the library's functions, which are replaced and compute nothing."""
    found: list[tuple[tuple[object, ...], dict[str, Any]]] = []

    def stop(*positional: object, **arguments: Any) -> None:
        found.append((positional, arguments))
        raise ManyheadsError("enough")

    monkeypatch.setattr("manyheads.runs.export.export", stop)
    monkeypatch.setattr("manyheads.runs.import_model.import_model", stop)
    return found


@pytest.mark.parametrize("output", [["-o", "there"], ["there"]])
def test_export_writes_to_the_output(output: list[str], calls: list[Any]) -> None:
    assert run(["export", "mine", "--to", "huggingface", *output, "--device", "cpu", "-q"]) == 1
    ((positional, arguments),) = calls
    assert positional == (Path("mine"), Path("there"), "huggingface")
    assert arguments["device"] == "cpu"


@pytest.mark.parametrize("output", [[], ["here", "-o", "there"]])
def test_export_needs_one_output(output: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "mine", *output, "--to", "huggingface"]) == 2
    assert "Say once where to write the export" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "options", "output"),
    [
        ("Helsinki-NLP/opus-mt-de-en", [], "runs/opus-mt-de-en"),
        ("models/gpt2/", [], "runs/gpt2"),
        ("somebody/de-en-1.5", [], "runs/de-en-1.5"),
        ("downloads/de_en.argosmodel", [], "runs/de_en"),
        ("models/gpt2", ["-o", "mine"], "mine"),
    ],
)
def test_import_names_the_run_after_the_model(
    model: str, options: list[str], output: str, calls: list[Any]
) -> None:
    assert run(["import", model, *options]) == 1
    ((positional, _),) = calls
    assert positional == (model, Path(output))
