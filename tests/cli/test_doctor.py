"""`doctor`: the device of an examination, reports in files, and explanations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tests.cli.conftest import Call

from manyheads.checks.catalogue import CATALOGUE
from manyheads.cli.main import run
from transformer_doctor.report import Diagnosis, Report
from transformer_doctor.texts import LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_exhibit_of_the_museum_fits_a_terminal(language: str, call: Call) -> None:
    lines = call("doctor", "museum", "7", "--lang", language).out.splitlines()
    assert len(lines) > 20
    assert max(map(cell_len, lines)) <= 80


def test_a_finding_is_explained_without_an_examination(call: Call) -> None:
    printed = " ".join(call("doctor", "--explain", "mask-fill").out.split())
    assert " ".join(CATALOGUE["model"]["mask-fill"].texts["en"].cure.split()) in printed
    listed = call("doctor", "--explain", "list").out
    assert all(name in listed for findings in CATALOGUE.values() for name in findings)
    assert "did you mean mask-fill" in call("doctor", "--explain", "mask-fil", code=2).err


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
        return Diagnosis({}, Report((), (), [("a check", "pad was not given")]), {})

    monkeypatch.setattr("manyheads.runs.examine_run.examine_run", examine_run)
    assert run(["doctor", str(tmp_path), *options, "-q"]) == 0
    assert run(["doctor", str(tmp_path), *options, "-q", "--strict"]) == 1
    assert {call["device"] for call in calls} == {device}


def test_options_of_a_model_are_refused_elsewhere(call: Call) -> None:
    for subject in ([], ["multi30k-de-en"]):
        err = call("doctor", *subject, "--pad", "3", "--quick", code=2).err
        assert "--pad, --quick: only a model takes this" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("theirs.py:fails", "theirs.py:fails raised ValueError: no weights here (theirs.py, line 2)."),
        ("theirs.py:fails --set a.b=3", "--set is for a configuration or a run"),
        ("theirs.py:fails --vocab-size 3,x", "'3,x' is neither a number of ids nor two"),
    ],
)
def test_a_mistake_about_a_model_is_one_line(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """An error of transformer_doctor ends the program as one of manyheads does."""
    (tmp_path / "theirs.py").write_text('def fails():\n    raise ValueError("no weights here")\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    printed = call("doctor", *words.split(), code=2).err
    assert message in printed
    assert printed.count("\n") == 1
