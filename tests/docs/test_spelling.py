"""The documents are spelt correctly (codespell) and use no private words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_help_wording import BANNED_WORDS

pytest.importorskip("codespell_lib")

ROOT = Path(__file__).parent.parent.parent
ENGLISH = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "design").glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"ko", "generated"} & set(page.parts)),
]
# The words of `BANNED_WORDS` (help texts) that documents may not use either.
PRIVATE = ["nobody|somebody|whoever|everybody", "at hand", "dice|by chance"]
BANNED = {words: reason for words, reason in BANNED_WORDS.items() if any(words.startswith(one) for one in PRIVATE)}
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def misspelt(*paths: Path) -> str:
    """Return the output of codespell about files, with the settings of pyproject.toml."""
    command = [sys.executable, "-m", "codespell_lib", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


def private_words(text: str) -> list[str]:
    """Return the private words of a text, without its code."""
    prose = CODE.sub("", text)
    return [found[0] for words in BANNED for found in re.finditer(rf"(?i)\b(?:{words})\b", prose)]


def test_the_documents_are_spelt_correctly() -> None:
    assert not misspelt(*ENGLISH)


def test_a_misspelt_word_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The attention is seperate.\n", encoding="utf-8")
    assert "separate" in misspelt(page)


def test_a_document_uses_no_private_words() -> None:
    assert [(page, word) for page in ENGLISH for word in private_words(page.read_text(encoding="utf-8"))] == []


def test_a_private_word_is_reported() -> None:
    assert len(BANNED) == len(PRIVATE)
    assert private_words("Nobody asks.") == ["Nobody"]
    assert not private_words("`nobody` in code")
