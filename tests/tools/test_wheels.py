"""The wheels of the compiled decoder: their files, tags and checks. A small program replaces the decoder."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.inference.native import build
from tools import wheels

needs_compiler = pytest.mark.skipif(not any(map(shutil.which, build._COMPILERS)), reason="no C compiler here")
METADATA = "Metadata-Version: 2.1\nName: manyheads\nVersion: 0.1.0\n"
ABOUT = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def pure(tmp_path: Path) -> Path:
    """Return a wheel without a library."""
    tree = tmp_path / "tree"
    for name, content in (
        ("manyheads/inference/native/decoder.c", "int answer(void) { return 7; }\n"),
        ("manyheads-0.1.0.dist-info/METADATA", METADATA),
        ("manyheads-0.1.0.dist-info/WHEEL", ABOUT),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", str(tmp_path), str(tree)], check=True)
    (path,) = tmp_path.glob("*.whl")
    return path


@needs_compiler
def test_a_wheel_for_a_system_installs_the_library_that_is_opened_there(pure: Path, tmp_path: Path) -> None:
    source, library = tmp_path / "decoder.c", tmp_path / "library.so"
    source.write_text("int answer(void) { return 13; }\n")
    level = build.instruction_set()
    build._compile_library(source, library, build._VECTORS.get(level, ()))
    tag = f"linux_{platform.machine()}"
    path = wheels.write_wheel(pure, tag, {level: library})
    assert path.name == f"manyheads-0.1.0-py3-none-{tag}.whl"
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps"]
    subprocess.run([*command, "--no-index", "--target", str(tmp_path / "site"), str(path)], check=True)
    name = build.shipped_name(level, library.read_bytes())
    installed = tmp_path / "site" / "manyheads" / "inference" / "native" / build.SHIPPED / name
    assert ctypes.CDLL(str(installed)).answer() == 13
    about = (tmp_path / "site" / "manyheads-0.1.0.dist-info" / "WHEEL").read_text()
    assert "Root-Is-Purelib: false" in about
    assert f"Tag: py3-none-{tag}" in about


def test_each_instruction_set_of_x86_has_a_library() -> None:
    for tag, target in wheels.SYSTEMS.items():
        levels = wheels.instruction_sets(target)
        assert set(levels) == ({"DEFAULT", *build._VECTORS} if "x86_64" in tag else {"DEFAULT"})


@pytest.mark.skipif(
    not all(map(shutil.which, ("aarch64-linux-gnu-gcc", "qemu-aarch64"))), reason="no compiler or emulator of ARM"
)
def test_a_library_for_arm_is_opened_under_an_emulator(tmp_path: Path) -> None:
    source, library = tmp_path / "decoder.c", tmp_path / "DEFAULT.so"
    source.write_text("long panel_width(void) { return 4; }\n")
    subprocess.run(["aarch64-linux-gnu-gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    target = wheels.SYSTEMS["manylinux_2_17_aarch64"]
    if platform.machine() != "aarch64":
        assert wheels.check_library(target, "DEFAULT", library) == "opened under QEMU"
    library.write_bytes(b"\x7fELF")
    with pytest.raises((subprocess.CalledProcessError, OSError)):
        wheels.check_library(target, "DEFAULT", library)
