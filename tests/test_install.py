"""`.ci/install` installs programs only as root, and elsewhere says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL = Path(__file__).parent.parent / ".ci" / "install"
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
