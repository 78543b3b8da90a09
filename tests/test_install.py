"""`make` installs the torch that is meant for the machine; `.ci/install` installs programs only as root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INSTALL = ROOT / ".ci" / "install"
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")


@pytest.mark.parametrize(("user", "installs"), [("0", True), ("1000", False)])
@pytest.mark.parametrize(("wanted", "package"), [("browsers", "chromium"), ("emulators", "qemu-user")])
def test_packages_are_installed_as_root_alone_and_never_with_sudo(
    tmp_path: Path, wanted: str, package: str, user: str, installs: bool
) -> None:
    calls = tmp_path / "calls"
    for name, line in {
        "id": f"echo {user}",
        "apt-get": f'echo "$@" >>{calls}',
        "sudo": f"echo sudo >>{calls}",
    }.items():
        program = tmp_path / name
        program.write_text(f"#!{BASH}\n{line}\n", encoding="utf-8")
        program.chmod(0o755)
    done = subprocess.run(
        [str(BASH), str(INSTALL), wanted], env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert package in done.stdout
    assert done.stdout.startswith("Installing" if installs else "Not installed")
    called = calls.read_text(encoding="utf-8") if calls.exists() else ""
    assert (f"-y {package}" in called) is installs
    assert "sudo" not in called


# Stands for Python in the environment: it notes each call, and plays PyTorch's index by the variable INDEX.
PYTHON = """
echo "$*" >>calls
case "$INDEX:$*" in
    silent:*"uv pip"*--dry-run*) exec sleep 60 ;;
    missing:*"uv pip"*--dry-run*) exit 2 ;;
    broken:*"uv pip"*--dry-run*) ;;
    broken:*"uv pip"*) exit 2 ;;
    unknown:*"pip "*" uv") exit 1 ;;
esac
"""


@pytest.mark.skipif(not shutil.which("make") or not shutil.which("timeout"), reason="needs make and timeout")
@pytest.mark.parametrize("target", [".venv/.ready", ".venv/.ready-for-tests"])
@pytest.mark.parametrize(
    ("system", "index", "tried", "warned"),
    [
        ("Linux", "answers", ["uv"], False),
        ("Linux", "missing", ["pip"], True),
        ("Linux", "broken", ["uv", "pip"], True),
        ("Linux", "unknown", ["pip"], True),
        pytest.param("Linux", "silent", ["pip"], True, marks=pytest.mark.slow),
        ("Darwin", "answers", ["pip"], False),
    ],
)
def test_torch_comes_from_the_index_that_fits_the_machine_or_the_size_is_said_before_pip_takes_it(
    tmp_path: Path, system: str, index: str, tried: list[str], warned: bool, target: str
) -> None:
    programs = {".venv/bin/python": PYTHON, "bin/uname": f"echo {system}"}
    for name, text in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!{BASH}\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    for name in ("constraints.txt", "pyproject.toml", "packages/bitext/pyproject.toml",
                 "packages/transformer-doctor/pyproject.toml"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "-f", str(ROOT / "Makefile"), target],
        env={**os.environ, "PATH": path, "INDEX": index}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    torch = [line for line in calls if " torch==" in line and "--dry-run" not in line]
    assert [line.split()[1] for line in torch] == tried
    assert all("--torch-backend=auto" in line for line in torch if "-m uv" in line)
    assert ("3 GB to download, 5 GB on the disk" in done.stdout) is warned
    rest = next(number for number, line in enumerate(calls) if "--editable" in line)
    assert calls.index(torch[-1]) < rest


@pytest.mark.parametrize(("extras", "doctor"), [("serve", False), ("serve,train", True), ("all", True)])
def test_the_image_has_torch_only_with_an_extra_that_needs_it_and_then_the_build_for_cpus(
    tmp_path: Path, extras: str, doctor: bool
) -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = re.findall(r"^RUN (.*uv pip install.*)$", text, re.MULTILINE)
    assert 'ARG UV_TORCH_BACKEND="cpu"\n' in text
    for name in ("pip", "uv", "rm"):
        (tmp_path / name).write_text(f'#!{BASH}\necho {name} "$*"\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [str(BASH), "-c", line], env={"PATH": str(tmp_path), "EXTRAS": extras}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"/source[{extras}]\n" in done.stdout
    assert ("transformer-doctor" in done.stdout) is doctor


DOCUMENTS = [
    *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/*.md"), *ROOT.glob("recipes/*.toml"),
    *ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("binder/*"),
]  # fmt: skip


def test_no_line_of_pip_in_a_document_or_a_message_replaces_an_editable_install() -> None:
    """Install a folder of this source editable, and a name without `--upgrade`: pip keeps what has this name."""
    found = []
    for path in DOCUMENTS:
        for line in re.findall(r"^.*pip install .*$", path.read_text(encoding="utf-8"), re.MULTILINE):
            words = re.sub(r"[\"'(),]", "", line.split("pip install ", 1)[1].split("`")[0]).split()
            for before, word in zip(["", *words], words, strict=False):
                folder = (ROOT / word.split("[")[0] / "pyproject.toml").is_file()
                replaces = before not in {"-e", "--editable"} if folder else before == "--upgrade"
                if replaces and "git pull in a copy of the source, elsewhere" not in line:
                    found.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert found == []
