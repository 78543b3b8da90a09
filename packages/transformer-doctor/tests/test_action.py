"""The action for GitHub and the hook of pre-commit run commands that exist."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")  # which transformers brings
PACKAGE = Path(__file__).parents[1]
ACTION = yaml.safe_load((PACKAGE / "action.yml").read_text(encoding="utf-8"))
HOOKS = PACKAGE.parents[1] / ".pre-commit-hooks.yaml"  # pre-commit reads it at the root of a repository alone

MODEL = """
from torch import nn


def make():
    layers = nn.Embedding(20, 8), nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), nn.Linear(8, 20)
    return {"model": nn.Sequential(*layers), "vocab_size": 20, "kind": "decoder"}
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_action_examines_and_writes_the_file_that_it_uploads(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "transformer-doctor").write_text(f'#!/bin/sh\nexec {sys.executable} -m transformer_doctor "$@"\n')
    (tmp_path / "transformer-doctor").chmod(0o755)
    step = next(step for step in ACTION["runs"]["steps"] if step["name"] == "Examine")
    variables = {"EXAMINE": "model.py:make --quick", "SARIF": ACTION["inputs"]["sarif"]["default"]}
    assert step["env"].keys() == variables.keys()
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path, env=os.environ | variables | {"PATH": path}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    results = json.loads((tmp_path / variables["SARIF"]).read_text("utf-8"))["runs"][0]["results"]
    assert "sees-the-future" in {result["ruleId"] for result in results}


@pytest.mark.skipif(not HOOKS.exists(), reason="the package stands alone here")
def test_the_hook_runs_the_program_of_the_environment() -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert (hook["entry"], hook["language"], hook["pass_filenames"]) == ("transformer-doctor", "system", False)
