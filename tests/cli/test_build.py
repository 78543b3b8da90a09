"""`build` prints reasons and times, and one JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.build.parts import write_plan

from manyheads.cli.main import run


def test_a_dry_run_writes_nothing_and_json_names_each_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["build", str(write_plan(tmp_path)), "-o", str(tmp_path / "out"), "--device", "cpu"]
    assert run([*command, "--dry-run"]) == 0
    assert "not made yet" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert run([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [step["step"] for step in document["steps"]] == ["backward", "back", "mixed"]
    assert document["steps"][2]["result"] == {"pairs": 12}
    assert run([*command, "--dry-run", "--json", "--set", "steps.mixed.text=[{text='back'}]"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [bool(step["reasons"]) for step in steps] == [False, False, True]


def test_a_mistake_in_a_plan_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", str(write_plan(tmp_path)), "--set", "steps.back.kind=trnslate"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
