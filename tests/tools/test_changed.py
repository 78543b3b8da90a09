"""`make check` runs the tests of the files that differ from main, and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from tools.changed import changed_files, find_tests, run_tests

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

PASSES, FAILS = "def test_it() -> None:\n    assert True\n", "def test_it() -> None:\n    assert False\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a repository with a package and its tests, committed on main, and check out a branch."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # variables of a git hook that runs these tests
    files = {
        "src/manyheads/__init__.py": "",
        "src/manyheads/a/__init__.py": "",
        "src/manyheads/a/b.py": "",
        "src/manyheads/a/untested.py": "",
        "src/manyheads/a/native/decoder.c": "",
        "tests/conftest.py": "",
        "tests/test_package.py": PASSES,
        "tests/test_a.py": PASSES,
        "tests/a/conftest.py": "",
        "tests/a/test_b.py": PASSES,
        "tests/a/test_other.py": PASSES,
        "tests/a/golden/run/data.json": "",
        "tests/a/native/test_decoder.py": PASSES,
        "README.md": "",
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    git(tmp_path, "checkout", "--quiet", "-b", "topic")
    return tmp_path


def write(root: Path, name: str, text: str = "# changed\n") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(root: Path, *arguments: str) -> None:
    own = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *own, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Change it")


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("src/manyheads/a/b.py", "tests/a/test_b.py"),
        ("src/manyheads/a/__init__.py", "tests/test_a.py"),
        ("src/manyheads/__init__.py", "tests/test_package.py"),
        ("src/manyheads/a/native/decoder.c", "tests/a/native"),
        ("tests/a/test_other.py", "tests/a/test_other.py"),
        ("tests/a/conftest.py", "tests/a"),
        ("tests/a/golden/run/data.json", "tests/a"),
        ("src/manyheads/a/untested.py", None),
        ("tests/conftest.py", None),
        ("tests/a/test_deleted.py", None),
    ],
)
def test_the_tests_of_a_changed_file_are_found(root: Path, changed: str, tests: str | None) -> None:
    assert find_tests(root, PurePosixPath(changed)) == (None if tests is None else PurePosixPath(tests))


def test_committed_staged_unstaged_and_new_changes_count_and_those_on_main_do_not(root: Path) -> None:
    git(root, "checkout", "--quiet", "main")
    write(root, "tests/a/native/data.json")
    commit(root)
    git(root, "checkout", "--quiet", "topic")
    write(root, "src/manyheads/a/b.py")
    commit(root)
    write(root, "tests/a/test_other.py", PASSES + "\n")
    git(root, "add", "tests/a/test_other.py")
    write(root, "README.md")
    write(root, "src/manyheads/a/new.py")
    (root / "tests" / "test_a.py").unlink()
    git(root, "mv", "tests/a/native/test_decoder.py", "tests/a/native/test_moved.py")
    assert changed_files(root) == [
        "README.md",
        "src/manyheads/a/b.py",
        "src/manyheads/a/new.py",
        "tests/a/native/test_decoder.py",
        "tests/a/native/test_moved.py",
        "tests/a/test_other.py",
        "tests/test_a.py",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [pytest.param(PASSES, 0, marks=pytest.mark.slow), (FAILS, 1), pytest.param("", 0, marks=pytest.mark.slow)],
)
def test_the_exit_code_is_that_of_the_tests(root: Path, text: str, code: int) -> None:
    """Include a file without tests, which is no failure."""
    write(root, "tests/a/test_b.py", text)
    assert run_tests(root, ["tests/a/test_b.py"], seconds=600) == code
