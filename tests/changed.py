"""Run the tests of the modules that have changed against main: the last part of `make check`.

    python -m tests.changed                changed since the common ancestor with main, committed or not
    python -m tests.changed --base v0.1.0  changed since the common ancestor with another commit
    python -m tests.changed --list         print the tests and run nothing

A module src/manyheads/a/b.py is tested by tests/a/test_b.py, and so is a package src/manyheads/a/b/__init__.py. Any
other file of the package, such as C, is tested by the folder of tests of the same name. A changed test file is run
itself; a changed fixture or helper of tests runs the tests of its folder. Tests that train a model and judge it
(`-m learning`) are left to `make test`, and slow ones (`-m slow`) to `make test-slow`.

The first failure ends the run with exit code 1. When the time is over, the run is stopped, with exit code 0 if
nothing has failed: so the command stays short.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
BASES = ("main", "origin/main")
SECONDS = 30.0  # of the tests; with format, lint and types `make check` stays under a minute
GRACE = 10.0  # seconds in which pytest ends when it is asked to
ALWAYS = ("tests/test_architecture.py", "tests/test_mirror.py")  # for a change of any module
PACKAGE, TESTS = PurePosixPath("src/manyheads"), PurePosixPath("tests")
NOTHING_COLLECTED = 5  # exit code of pytest
SERIAL_FILES = 3  # files of tests, for which starting several processes takes longer than it saves
PARALLEL = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]


@dataclass
class Selection:
    """The tests of some changed files.

    Attributes:
        tests: files and folders of tests, as pytest takes them; no file is listed together with its folder.
        without: changed modules that have no test file of their name.
        everywhere: changed helpers of the whole of tests/, which `make test` alone can try.
    """

    tests: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    everywhere: list[str] = field(default_factory=list)


def git(root: Path, *arguments: str) -> list[str]:
    """Return what a git command prints, split at NUL bytes.

    Raises:
        subprocess.CalledProcessError: the git command fails.
    """
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, encoding="utf-8")
    return [name for name in done.stdout.split("\0") if name]


def find_base(root: Path) -> str | None:
    """Return the first of `BASES` that this repository knows; None where there is none, or no repository."""
    for base in BASES:
        try:
            git(root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
        except (OSError, subprocess.CalledProcessError):
            continue
        return base
    return None


def changed_files(root: Path, base: str) -> list[str]:
    """Return the paths below `root` that differ from the common ancestor with `base`, new and deleted ones too."""
    (ancestor,) = git(root, "merge-base", base, "HEAD")
    tracked = git(root, "diff", "--name-only", "--no-renames", "-z", ancestor.strip())
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({*tracked, *untracked})


def mirror_of(module: PurePosixPath) -> PurePosixPath:
    """Return the test file that mirrors a module or a package: src/manyheads/a/b.py -> tests/a/test_b.py.

    Args:
        module: its path below src/manyheads.
    """
    named = module.parent if module.name == "__init__.py" else module.with_suffix("")
    return TESTS / named.parent / f"test_{named.name or 'package'}.py"


def find_tests(root: Path, path: PurePosixPath) -> PurePosixPath | None:
    """Return the test file or the folder of tests of a changed file; None where there is none."""
    if path.is_relative_to(PACKAGE):
        inside = path.relative_to(PACKAGE)
        found = mirror_of(inside) if path.suffix == ".py" else TESTS / inside.parent
    elif path.name.startswith("test_") and path.suffix == ".py":
        found = path
    else:  # a helper, or data: the nearest folder that holds tests
        found = next((folder for folder in path.parents if any(Path(root, folder).glob("test_*.py"))), path)
    return found if Path(root, found).exists() and found != TESTS else None


def select(root: Path, paths: Sequence[str]) -> Selection:
    """Choose the tests of changed files; files that are neither of the package nor of its tests have none."""
    selection = Selection()
    found: set[PurePosixPath] = set()
    for path in map(PurePosixPath, paths):
        in_package = path.is_relative_to(PACKAGE)
        if not in_package and not path.is_relative_to(TESTS):
            continue
        if tests := find_tests(root, path):
            found.add(tests)
        elif in_package and Path(root, path).exists():
            selection.without.append(str(path))
        elif not in_package and path.suffix == ".py" and Path(root, path).exists():
            selection.everywhere.append(str(path))
        if in_package:
            found.update(PurePosixPath(name) for name in ALWAYS if Path(root, name).exists())
    selection.tests = sorted(str(one) for one in found if not any(folder in found for folder in one.parents))
    return selection


def run_tests(root: Path, tests: Sequence[str], seconds: float) -> int:
    """Run pytest up to the first failure; returns 0 where nothing failed before the time was over."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        command = [sys.executable, "-m", "pytest", "-x", "-m", "not learning and not slow", f"--junitxml={results}"]
        process = subprocess.Popen([*command, *(PARALLEL if len(tests) > SERIAL_FILES else []), *tests], cwd=root)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            end(process)
            print(f"The tests were stopped after {seconds:g} s. `make test` runs them all.")
            return int(any_failed(results))
        except KeyboardInterrupt:
            end(process)
            raise
    return 0 if code == NOTHING_COLLECTED else code


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process that was asked to end has ended, and kill it if it takes too long."""
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def any_failed(results: Path) -> bool:
    """Return whether pytest's JUnit XML file holds a failure or an error; False if it was not written."""
    if not results.exists():
        return False
    suites = ElementTree.parse(results).iter("testsuite")
    return any(int(suite.get("failures", 0)) + int(suite.get("errors", 0)) for suite in suites)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; returns its exit code."""
    description, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tests.changed",
        description=description,
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--base", metavar="COMMIT", help="Compare with COMMIT (default: main, or origin/main).")
    parser.add_argument("--list", action="store_true", help="Print the tests and run nothing.")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S",
                        help="Stop the tests after S seconds (default: %(default)g).")  # fmt: skip
    options = parser.parse_args(arguments)
    base = options.base or find_base(root)
    try:
        if base is None:
            raise ValueError(f"there is no commit to compare with ({' or '.join(BASES)}). Name one: --base COMMIT.")
        paths = changed_files(root, base)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        reason = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else ""
        print(f"error: {reason or error}", file=sys.stderr)
        return 2
    selection = select(root, paths)
    print(f"{len(paths)} files differ from {base}.")
    for path in selection.without:
        print(f"no test file of its name: {path}")
    for path in selection.everywhere:
        print(f"all tests use it, run `make test`: {path}")
    if not selection.tests:
        print("There are no tests to run for them.")
        return 0
    print(f"tests: {' '.join(selection.tests)}", flush=True)
    return 0 if options.list else run_tests(root, selection.tests, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
