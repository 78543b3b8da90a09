"""The messages that the page on troubleshooting explains are messages of the program."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "howto" / "troubleshooting.md"
# Output of other programs, and names that are not messages.
NOT_OURS = {"manyheads: command not found", "pip install", "nan", "<unk>", "timeout"}


@functools.cache
def messages() -> str:
    """Return all string constants in the source of the package, joined by line ends."""
    pieces = []
    for path in sorted((ROOT / "src" / "manyheads").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                pieces.append(node.value)
    return "\n".join(pieces)


def symptoms() -> list[str]:
    """Return the messages in the first column of the tables: code of at least two words, or a word of an error."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = [code for row in rows for code in re.findall(r"`([^`]+)`", row)]
    return [code for code in found if code not in NOT_OURS and not re.match(r"manyheads |--|/|Retry", code)]


@pytest.mark.parametrize("symptom", symptoms())
def test_a_message_on_the_page_is_in_the_source(symptom: str) -> None:
    assert symptom in messages()


def test_the_page_explains_many_messages() -> None:
    assert len(symptoms()) > 15
    assert "there is no such message of ours" not in messages()
