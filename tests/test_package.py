"""What `import manyheads` promises."""

from __future__ import annotations

import subprocess
import sys

import pytest

import manyheads


@pytest.mark.parametrize("name", manyheads.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(getattr(manyheads, name))
    assert name in dir(manyheads)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Transltor'"):
        manyheads.Transltor  # noqa: B018


def test_importing_it_imports_nothing_heavy() -> None:
    code = "import sys, manyheads; print(sorted({'torch', 'numpy', 'pydantic', 'sacrebleu'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"
