"""The public names of `manyheads`, its import, and the versions of the packages it needs."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", manyheads.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert callable(getattr(manyheads, name))
    assert name in dir(manyheads)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Transltor'"):
        manyheads.Transltor  # noqa: B018


def test_importing_manyheads_imports_no_heavy_package() -> None:
    code = "import sys, manyheads; print(sorted({'torch', 'numpy', 'pydantic', 'sacrebleu'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="torch has libgomp there alone")
@pytest.mark.parametrize(("asked", "count"), [({}, "10000"), ({"GOMP_SPINCOUNT": "77"}, "77")])
def test_threads_of_openmp_spin_briefly_unless_the_environment_sets_a_count(
    asked: dict[str, str], count: str
) -> None:
    unset = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
    command = [sys.executable, "-c", "import manyheads, torch"]
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
    found = {one.name: one.metadata.get("Requires-Python") for one in metadata.distributions()}
    too_new = {
        name: asked
        for name, asked in found.items()
        if canonicalize_name(name) in pinned and asked and not SpecifierSet(asked).contains(oldest)
    }
    assert too_new == {}
