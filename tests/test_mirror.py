"""Tests mirror packages: src/manyheads/a/b.py is tested by tests/a/test_b.py, and so are all packages.

tests/mirror_baseline.txt lists the modules that had no test file of their name when this rule was introduced. That
list only shrinks. After a move of modules, write it again and look at the difference:

    python -m tests.test_mirror > tests/mirror_baseline.txt
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest
from tools.changed import TESTS, mirror_of

ROOT = Path(__file__).parent.parent
BASELINE = Path(__file__).with_name("mirror_baseline.txt")


def modules() -> list[str]:
    """Return the path of every module of the packages, `__init__.py` excepted."""
    paths = (path for package in TESTS for path in Path(ROOT, package).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py")


def has_test_file(module: str) -> bool:
    return (ROOT / mirror_of(PurePosixPath(module))).is_file()


def untested() -> list[str]:
    """Return the modules without a test file of their name."""
    return [module for module in modules() if not has_test_file(module)]


KNOWN = BASELINE.read_text(encoding="utf-8").splitlines()


def test_each_module_has_a_test_file_of_its_name() -> None:
    """Only where a module of the baseline was renamed, rename its line there."""
    missing = [mirror_of(PurePosixPath(module)) for module in modules() if module not in KNOWN]
    assert not [str(test) for test in missing if not (ROOT / test).is_file()], "test files that a module needs"


def test_the_baseline_only_shrinks() -> None:
    done = [module for module in KNOWN if not (ROOT / module).is_file() or has_test_file(module)]
    assert not done, f"gone, or with their test file now: remove their lines from tests/{BASELINE.name}."


def test_pytest_leaves_out_no_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """By default it skips folders such as `build`."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent for path in Path(__file__).parent.rglob("test_*.py")}
    assert not [folder for folder in folders if any(fnmatch(folder.name, pattern) for pattern in patterns)]


if __name__ == "__main__":
    print(*untested(), sep="\n")
