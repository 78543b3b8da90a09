"""The C code compiles without a warning, with every compiler of this machine, for every instruction set."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.inference.native.processors import DRIVER  # which includes decoder.c

from manyheads.inference.native import build

FOLDER = Path(build.__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wvla", "-Wundef", "-Wstrict-prototypes", "-Werror")
TARGETS = [
    pytest.param(
        compiler,
        flags,
        marks=[] if (compiler, name) == ("gcc", "AVX2") else pytest.mark.weekly,
        id=f"{compiler}, {name}",
    )
    for compiler in ("gcc", "clang")
    for name, flags in {"SSE": (), **build._VECTORS, "SSE, condition variables": ("-DNO_FUTEX",)}.items()
] + [pytest.param("aarch64-linux-gnu-gcc", (), marks=pytest.mark.weekly, id="aarch64-linux-gnu-gcc, NEON")]


@pytest.mark.parametrize(("compiler", "flags"), TARGETS)
@pytest.mark.slow
def test_the_c_code_compiles_without_a_warning(compiler, flags, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    default = [flag for flag in build._FLAGS if flag not in ("-O3", "-shared")]
    command = [compiler, "-O1", *default, *WARNINGS, *flags, f"-I{FOLDER}", "-c", str(DRIVER), "-o"]
    done = subprocess.run([*command, str(tmp_path / "object.o")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
