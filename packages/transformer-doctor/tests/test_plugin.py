"""The pytest fixture of the doctor, run in a separate process as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = """
import sys
import torch
from specimens.planted import Transformer

torch.manual_seed(0)
def test_sound(doctor):
    report = doctor.examine(Transformer(), vocab_size=23, pad=0, bos=1, eos=2, longest=64)
    assert len(report.asked) > 5
def test_planted(doctor):
    doctor.examine(Transformer(3), vocab_size=23, pad=0, bos=1, eos=2, longest=64)
def test_split(doctor):
    doctor.examine_split(["a b"], ["c d"])
"""


def test_a_doctor_test_passes_for_a_sound_model_and_names_the_defect_of_another(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE, encoding="utf-8")
    plugin = "transformer_doctor.plugin"
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-q", str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed" in result.stdout, result.stdout + result.stderr
    assert "error: padding-mask-on-queries" in result.stdout


def test_the_plugin_is_an_entry_point_that_imports_no_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"transformer_doctor": "transformer_doctor.plugin"}
    code = "import sys, transformer_doctor.plugin; print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "False\n"
