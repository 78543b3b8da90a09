"""`doctor`: the device of an examination, reports in files, and explanations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from manyheads.checks.catalogue import CATALOGUE
from manyheads.cli.main import run
from transformer_doctor.report import Diagnosis, Report
from transformer_doctor.texts import LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_exhibit_of_the_museum_fits_a_terminal(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "museum", "7", "--lang", language]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert max(map(cell_len, lines)) <= 80


def test_a_finding_is_explained_without_an_examination(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--explain", "mask-fill"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert " ".join(CATALOGUE["model"]["mask-fill"].texts["en"].cure.split()) in printed
    assert run(["doctor", "--explain", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for findings in CATALOGUE.values() for name in findings)
    assert run(["doctor", "--explain", "mask-fil"]) == 2
    assert "did you mean mask-fill" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "markdown"])
def test_a_report_is_written_to_a_file(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report"
    assert run(["doctor", "--format", form, "-o", str(file)]) in (0, 1)
    assert capsys.readouterr().out == ""
    assert run(["doctor", "--format", form]) in (0, 1)
    assert file.read_text("utf-8").splitlines()[:1] == capsys.readouterr().out.splitlines()[:1]


@pytest.mark.parametrize(("options", "device"), [([], "cpu"), (["--device", "cuda:1"], "cuda:1")])
def test_a_run_is_examined_on_the_device_named(
    options: list[str], device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def examine_run(path: Path, **arguments: Any) -> Diagnosis:
        calls.append(arguments)
        return Diagnosis({}, Report((), (), ()), {})

    monkeypatch.setattr("manyheads.runs.examine_run.examine_run", examine_run)
    assert run(["doctor", str(tmp_path), *options, "-q"]) == 0
    assert [call["device"] for call in calls] == [device]


def test_options_of_a_model_are_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    for subject in ([], ["multi30k-de-en"]):
        assert run(["doctor", *subject, "--pad", "3", "--quick"]) == 2
        assert "--pad, --quick: only a model takes this" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("theirs.py:fails", "theirs.py:fails raised ValueError: no weights here (theirs.py, line 2)."),
        ("theirs.py:fails --set a.b=3", "--set is for a configuration or a run"),
        ("theirs.py:fails --vocab-size 3,x", "'3,x' is neither a number of ids nor two"),
    ],
)
def test_a_mistake_about_a_model_is_one_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of transformer_doctor ends the program as one of manyheads does."""
    (tmp_path / "theirs.py").write_text('def fails():\n    raise ValueError("no weights here")\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    assert run(["doctor", *words.split()]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
