"""The documents are spelt correctly (codespell)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("codespell_lib")

ROOT = Path(__file__).parent.parent.parent
ENGLISH = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "design").glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"ko", "generated"} & set(page.parts)),
]


def misspelt(*paths: Path) -> str:
    """Return the output of codespell about files, with the settings of pyproject.toml."""
    command = [sys.executable, "-m", "codespell_lib", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


def test_the_documents_are_spelt_correctly() -> None:
    assert not misspelt(*ENGLISH)
