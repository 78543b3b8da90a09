"""Each module of the table exists, and has what the half without torch asks of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manyheads.errors import MissingExtraError
from manyheads.inference import torch_parts
from manyheads.inference.torch_parts import MODULES, torch_module

SOURCE = Path(torch_parts.__file__).parents[1]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_table_is_imported_and_used(name: str) -> None:
    assert torch_module(name, "A test").__name__ == MODULES[name]
    assert any(f'torch_module("{name}"' in path.read_text("utf-8") for path in SOURCE.rglob("*.py"))


def test_what_is_asked_of_a_module_is_in_it() -> None:
    asked = {
        found
        for path in SOURCE.rglob("*.py")
        for found in re.findall(r'torch_module\("(\w+)", [^()]*\)\.(\w+)', path.read_text("utf-8"))
    }
    assert len(asked) > 5
    for name, attribute in asked:
        assert hasattr(torch_module(name, "A test"), attribute), (name, attribute)


def test_a_missing_package_is_named_with_its_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "engine", "torch.no_such_module")
    with pytest.raises(MissingExtraError, match="A test needs the package torch"):
        torch_module("engine", "A test")
