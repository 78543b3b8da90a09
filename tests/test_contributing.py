"""CONTRIBUTING.md is correct, and short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAX_LINE_LENGTH, MAX_CHARACTERS = 128, 6_000


def test_the_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([\w-]+)`", TEXT):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^):#]+)\)", TEXT))))
def test_the_target_of_a_link_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_package_is_in_the_table_of_packages() -> None:
    folders = {path.parent.name for path in (ROOT / "src" / "manyheads").glob("*/__init__.py")}
    rows = re.findall(r"^\| (`.*?) \|", TEXT.split("## Where things are")[1].split("###")[0], re.MULTILINE)
    mapped = {name.split("/")[0] for row in rows for name in re.findall(r"`([\w/]+)`", row)}
    assert mapped == folders


def test_it_is_short() -> None:
    assert len(TEXT) <= MAX_CHARACTERS


def test_lines_do_not_exceed_the_maximum_length() -> None:
    """Ignore rows of tables, which cannot be wrapped."""
    long = [line for line in TEXT.splitlines() if len(line) > MAX_LINE_LENGTH and not line.startswith("|")]
    assert long == []
