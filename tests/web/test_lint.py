"""The browser code follows the rules of eslint, its types hold, and its scripts are built from its modules."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SETTINGS = ("package.json", "package-lock.json", "eslint.config.js", "tsconfig.json")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manyheads-web"


def node_version() -> tuple[int, ...]:
    """Return the version of Node.js, such as (20, 19, 2); () without it."""
    program = shutil.which("node")
    if program is None:
        return ()
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in text.strip().removeprefix("v").split("."))


def installed_packages(npm: str) -> Path:
    """Return a folder of the packages of package-lock.json: that of the checkout, or one in the user's cache."""
    if (ROOT / "node_modules").is_dir():
        return ROOT / "node_modules"
    folder = CACHE / hashlib.sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=CACHE))
        for name in SETTINGS[:2]:
            shutil.copy(ROOT / name, draft)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=draft, capture_output=True, text=True, check=False)
        with suppress(OSError):  # another process may have been faster
            if not done.returncode:
                draft.rename(folder)
        shutil.rmtree(draft, ignore_errors=True)
        if not folder.is_dir():
            pytest.skip(f"npm cannot install the packages of package-lock.json: {done.stderr[-500:]}")
    return folder / "node_modules"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the browser code, its tests and its build, with the packages of package-lock.json."""
    npm = shutil.which("npm")
    if npm is None or node_version() < (20, 19):
        pytest.skip("eslint needs npm, and Node.js 20.19 or newer")
    copy = tmp_path_factory.mktemp("web")
    for name in SETTINGS:
        shutil.copy(ROOT / name, copy)
    for folder in ("src/manyheads/web", "tests/web"):
        shutil.copytree(ROOT / folder, copy / folder)
    (copy / "tools").mkdir()
    shutil.copy(ROOT / "tools/web.mjs", copy / "tools")
    (copy / "node_modules").symlink_to(installed_packages(npm), target_is_directory=True)
    return copy


def test_the_built_scripts_are_those_of_the_modules(checkout: Path) -> None:
    built = Path("src/manyheads/web/built")
    shutil.rmtree(checkout / built)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=checkout, check=True)
    found, expected = (
        {path.name: path.read_bytes() for path in (root / built).iterdir()} for root in (checkout, ROOT)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("script", "code", "messages"),
    [
        ("lint", f"var one = /{'x' * 90}/;\nexport {{ one }};\n", {"no-var", "max-len"}),
        ("format", "export const one = [1,2];\n", {"Code style issues"}),
        ("types", "export const one = (text) => text.length;\n", {"implicitly has an 'any' type"}),
    ],
)
def test_the_only_faults_are_those_that_the_test_adds(
    checkout: Path, script: str, code: str, messages: set[str]
) -> None:
    """Our code follows the rules and its types hold, and a fault would be found."""
    (checkout / "src/manyheads/web/fault.js").write_text(code, encoding="utf-8")
    command = ["npm", "run", "--silent", script]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    found = done.stdout + done.stderr
    assert done.returncode != 0
    assert [message for message in messages if message not in found] == []
    assert {Path(name).name for name in re.findall(r"\S+\.js\b", found)} == {"fault.js"}, found
