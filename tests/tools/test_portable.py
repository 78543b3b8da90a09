"""The rows of `python -m tools.portable` name tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.portable import ROWS, Row

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_file_of_a_row_exists(row: Row) -> None:
    paths = [name for name in row.tests if name.startswith(("tests/", "packages/"))]
    missing = [name for name in paths if not (ROOT / name).exists()]
    assert not missing
