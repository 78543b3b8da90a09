"""`evaluate`: the options reach the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runs.language import make_language_config

from manyheads.cli.main import run
from manyheads.config.load import config_to_json
from manyheads.errors import ManyheadsError


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the recorded arguments of the library's functions, which are replaced and compute nothing."""
    found: list[dict[str, Any]] = []

    def stop(*positional: object, **arguments: Any) -> None:
        found.append({"runs": positional, **arguments})
        raise ManyheadsError("enough")

    monkeypatch.setattr("manyheads.runs.evaluate.evaluate", stop)
    monkeypatch.setattr("manyheads.runs.compare.compare", stop)
    return found


@pytest.mark.parametrize("against", [None, "other"])
def test_options_reach_the_library(against: str | None, calls: list[dict[str, Any]]) -> None:
    options = ["--source-file", "a.de", "--reference-file", "a.en", "--beam", "3", "--device", "cpu", "-q"]
    options += ["--set", "search.length_penalty=0.5", *(["--against", against] if against else [])]
    assert run(["evaluate", "mine", *options]) == 1
    (call,) = calls
    assert call.pop("listener") is not None
    assert call == {
        "runs": (Path("mine"),),
        **({"other": Path(against)} if against else {}),
        "split": "test",
        "source": Path("a.de"),
        "reference": Path("a.en"),
        "overrides": ("search.length_penalty=0.5", "search.beam_size=3"),
        "device": "cpu",
    }


def test_without_a_beam_the_run_decides(calls: list[dict[str, Any]]) -> None:
    assert run(["evaluate", "mine", "-q"]) == 1
    assert (calls[0]["overrides"], calls[0]["device"]) == ((), "auto")


def test_a_reference_needs_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "mine", "--reference-file", "a.en"]) == 2
    assert "--source-file and --reference-file belong together." in capsys.readouterr().err


def test_an_output_file_is_refused_for_a_language_model_before_it_is_scored(
    tmp_path: Path, calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(config_to_json(make_language_config(tmp_path)), encoding="utf-8")
    assert run(["evaluate", str(tmp_path), "-o", str(tmp_path / "out.txt")]) == 2
    assert "the evaluation of a language model writes no text" in capsys.readouterr().err
    assert not calls
