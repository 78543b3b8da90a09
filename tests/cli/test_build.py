"""`build` prints reasons and times, and one JSON document."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.improve.build.parts import write_plan


def test_a_dry_run_writes_nothing_and_json_names_each_step(tmp_path: Path, call: Call) -> None:
    command = ["build", str(write_plan(tmp_path)), "-o", str(tmp_path / "out"), "--device", "cpu"]
    assert "not made yet" in call(*command, "--dry-run").out
    assert not (tmp_path / "out").exists()
    document = json.loads(call(*command, "--json").out)
    assert [step["step"] for step in document["steps"]] == ["backward", "back", "mixed"]
    assert document["steps"][2]["result"] == {"pairs": 12}
    changed = json.loads(call(*command, "--dry-run", "--json", "--set", "steps.mixed.text=[{text='back'}]").out)
    assert [bool(step["reasons"]) for step in changed["steps"]] == [False, False, True]


def test_a_mistake_in_a_plan_is_one_line(tmp_path: Path, call: Call) -> None:
    assert call("build", write_plan(tmp_path), "--set", "steps.back.kind=trnslate", code=2).err.count("\n") == 1
