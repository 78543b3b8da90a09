"""Run the tests of the files that differ from main, for at most 30 seconds: the last part of `make check`.

src/manyheads/a/b.py is tested by tests/a/test_b.py, a package src/manyheads/a/b/__init__.py too, and any other file
of the package, such as C, by the folder of tests of the same name; so are the packages of packages/. A changed
test file is run itself; a changed fixture or helper runs its folder. Slow tests, and tests that judge what
a model learned, are left to `make test`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
BASES = ("main", "origin/main")
MAX_SECONDS = 30.0  # with format, lint and types `make check` stays under a minute
GRACE_SECONDS = 10.0  # in which pytest ends what its tests have started
ALWAYS = ("tests/test_architecture.py", "tests/test_mirror.py")  # for a change of any module
BITEXT = PurePosixPath("packages/bitext")
DOCTOR = PurePosixPath("packages/transformer-doctor")
TESTS = {  # by package
    PurePosixPath("src/manyheads"): PurePosixPath("tests"),
    BITEXT / "src/bitext": BITEXT / "tests",
    DOCTOR / "src/transformer_doctor": DOCTOR / "tests",
}
NOTHING_COLLECTED = 5  # exit code of pytest
MAX_SERIAL_FILES = 3  # files of tests for which starting several processes takes longer than it saves
PARALLEL = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]


def changed_files(root: Path) -> list[str] | None:
    """Return the paths that differ from the common ancestor with main, new and deleted ones too."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, encoding="utf-8")
        return [name for name in done.stdout.split("\0") if name]

    for base in BASES:
        with suppress(OSError, subprocess.CalledProcessError):
            tracked = git("diff", "--name-only", "--no-renames", "--merge-base", "-z", base)
            return sorted({*tracked, *git("ls-files", "--others", "--exclude-standard", "-z")})
    return None


def mirror_of(module: PurePosixPath) -> PurePosixPath:
    """Return the test file of a module of a package: src/manyheads/a/b.py -> tests/a/test_b.py."""
    package = package_of(module)
    assert package is not None
    inside = module.relative_to(package)
    named = inside.parent if inside.name == "__init__.py" else inside.with_suffix("")
    return TESTS[package] / named.parent / f"test_{named.name or 'package'}.py"


def package_of(path: PurePosixPath) -> PurePosixPath | None:
    """Return the folder of the package that a file belongs to; None for any other file."""
    return next((package for package in TESTS if path.is_relative_to(package)), None)


def find_tests(root: Path, path: PurePosixPath) -> PurePosixPath | None:
    """Return the test file or the folder of tests of a changed file; None where there is none."""
    if package := package_of(path):
        found = mirror_of(path) if path.suffix == ".py" else TESTS[package] / path.relative_to(package).parent
    elif path.name.startswith("test_") and path.suffix == ".py":
        found = path
    else:  # a helper, or data: the nearest folder that holds tests
        found = next((folder for folder in path.parents if any(Path(root, folder).glob("test_*.py"))), path)
    return found if Path(root, found).exists() and found not in TESTS.values() else None


def select(root: Path, changed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tests of changed files of the package and of its tests, and the files that have none."""
    tests: set[PurePosixPath] = set()
    without = []
    for path in map(PurePosixPath, changed):
        if package_of(path):
            tests.update(PurePosixPath(name) for name in ALWAYS if Path(root, name).exists())
        elif not any(path.is_relative_to(folder) for folder in TESTS.values()):
            continue
        if found := find_tests(root, path):
            tests.add(found)
        elif Path(root, path).exists():
            without.append(str(path))
    return sorted(str(test) for test in tests if not tests.intersection(test.parents)), without


def run_tests(root: Path, tests: Sequence[str], seconds: float = MAX_SECONDS) -> int:
    """Run pytest up to the first failure; return 0 if nothing failed before the time was over."""
    parallel = PARALLEL if len(tests) > MAX_SERIAL_FILES else []
    command = [sys.executable, "-m", "pytest", "-x", "-m", "not learning and not slow", *parallel, *tests]
    process = subprocess.Popen(command, cwd=root)
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        process.kill()
        process.wait()
        print(f"The tests were stopped after {seconds:g} s. `make test` runs them all.")
        return 0
    return 0 if code == NOTHING_COLLECTED else code


def main(root: Path = ROOT) -> int:
    """Run the tests of the changed files; return the exit code."""
    changed = changed_files(root)
    if changed is None:
        print(f"error: there is no commit to compare with ({' or '.join(BASES)}).", file=sys.stderr)
        return 2
    tests, without = select(root, changed)
    print(f"{len(changed)} files differ from main.")
    if without:
        print(f"left to `make test`: {' '.join(without)}")
    print(f"tests: {' '.join(tests) or 'none'}", flush=True)
    return run_tests(root, tests) if tests else 0


if __name__ == "__main__":
    sys.exit(main())
