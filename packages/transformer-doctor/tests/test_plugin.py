"""The pytest fixture of the doctor: findings fail a test, and so does a call that the doctor refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from torch import nn

from transformer_doctor.plugin import Doctor

ROOT = Path(__file__).parents[1]


def test_a_sound_subject_passes_and_errors_and_refusals_fail_the_test(doctor: Doctor) -> None:
    assert doctor.examine_split(["a b"], ["c d"]).ok
    with pytest.raises(pytest.fail.Exception, match=r"^error: tested-on-training-data"):
        doctor.examine_split(["a b"], ["a b"])
    with pytest.raises(pytest.fail.Exception, match=r"^examine_evaluation: 0 batches are too few"):
        doctor.examine_evaluation(lambda batches: 0.0, [], [])
    unchecked = {"model": nn.Embedding(9, 9), "kind": "decoder", "vocab_size": 9, "longest": 8}
    assert doctor.examine(**unchecked).missing
    with pytest.raises(pytest.fail.Exception, match="for more checks, give train_step"):
        doctor.examine(**unchecked, strict=True)
    with pytest.raises(AttributeError, match="the doctor has no watch"):
        doctor.watch()


def test_the_plugin_is_an_entry_point_that_imports_no_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"transformer_doctor": "transformer_doctor.plugin"}
    code = "import sys, transformer_doctor.plugin; print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "False\n"
