"""The public names of `manyheads`, its import, and the versions of the packages it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import manyheads

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def test_every_public_name_exists() -> None:
    assert all(callable(getattr(manyheads, name)) for name in manyheads.__all__)
    assert set(manyheads.__all__) <= set(dir(manyheads))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Transltor'"):
        manyheads.Transltor  # noqa: B018


def test_importing_manyheads_imports_no_heavy_package() -> None:
    code = "import sys, manyheads; print(sorted({'torch', 'numpy', 'sacrebleu'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"


STATE = """
import os, signal, sys, warnings
def state():
    handlers = [signal.getsignal(number) for number in range(1, signal.NSIG)]
    return [dict(os.environ), handlers, list(sys.path), warnings.filters[:], sys.excepthook]
"""
LIGHT_ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}


def test_an_import_changes_nothing_of_the_program_that_imports() -> None:
    names = "manyheads, transformer_doctor.plugin, manyheads.cli.main, manyheads.inference.loading"
    code = f"{STATE}\nimport torch, pytest\nbefore = state()\nimport {names}\nassert state() == before"
    subprocess.run([sys.executable, "-c", code], check=True, env=LIGHT_ENVIRONMENT)


def test_the_plugin_changes_nothing_of_a_pytest_session(tmp_path: Path) -> None:
    """The environment of the session is the same without the plugin, and nothing large is imported."""
    (tmp_path / "test_other.py").write_text(
        "import json, os, sys\ndef test_it():\n    heavy = {'torch', 'numpy'} & set(sys.modules)\n"
        "    print('found', json.dumps([dict(os.environ), sorted(heavy)]))\n"
    )

    def found(*options: str) -> tuple[dict[str, str], list[str]]:
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *options, "test_other.py"]
        environment = LIGHT_ENVIRONMENT | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
        return tuple(json.loads(line.removeprefix("found ")))

    variables, heavy = found("-p", "transformer_doctor.plugin")
    assert variables == found()[0]
    assert heavy == []


@pytest.mark.skipif(sys.platform != "linux", reason="torch has libgomp there alone")
@pytest.mark.parametrize(
    ("asked", "count"), [({}, "10000"), pytest.param({"GOMP_SPINCOUNT": "77"}, "77", marks=pytest.mark.slow)]
)
def test_threads_of_openmp_spin_briefly_unless_the_environment_sets_a_count(
    asked: dict[str, str], count: str
) -> None:
    unset = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    code = "from manyheads.__main__ import main\ntry: main()\nfinally: import torch"
    command = [sys.executable, "-c", code, "--version"]
    environment = unset | {"OMP_DISPLAY_ENV": "verbose"} | asked
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
    assert f"GOMP_SPINCOUNT = '{count}'" in printed


def test_pinned_packages_support_the_oldest_python_that_is_promised() -> None:
    """Compare with x.y.0, because a package that requires a later 3.11 cannot be installed on Debian 12."""
    (minimum,) = SpecifierSet(metadata.metadata("manyheads")["Requires-Python"])
    oldest = f"{minimum.version}.0"
    pinned = {
        canonicalize_name(line.split("==")[0]) for line in CONSTRAINTS.read_text().splitlines() if "==" in line
    }
    found = {package.name: package.metadata.get("Requires-Python") for package in metadata.distributions()}
    too_new = {
        name: asked
        for name, asked in found.items()
        if canonicalize_name(name) in pinned and asked and not SpecifierSet(asked).contains(oldest)
    }
    assert too_new == {}
