"""The statements of the README are true. Its commands, and those of the other pages, are run by `tests/docs`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENGLISH, KOREAN = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced code blocks of a language; "" stands for no language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in fenced if named == language]


def test_both_languages_hold_the_same_code_and_the_same_output() -> None:
    assert blocks(ENGLISH, "python") == blocks(KOREAN, "python")
    printed = [[block for block in blocks(text, "text") if "nrefs" in block] for text in (ENGLISH, KOREAN)]
    assert printed[0] == printed[1] != []


def test_the_set_up_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in (ENGLISH, KOREAN):
        targets = re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE)
        assert {"demo", "test", "docs"} <= set(targets)
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_first_screens_hold_the_first_commands_and_the_limits() -> None:
    """Expect two commands, training on a corpus of your own in four lines, and the list of limits."""
    for text, limits in ((ENGLISH, "## What it is, and is not"), (KOREAN, "## 하는 것과 하지 않는 것")):
        assert len(text.splitlines()) <= 122
        first = text.partition(limits)[0]
        assert first.count("\n") < 66
        assert "make demo" in first
        own = next(block for block in blocks(first, "bash") if "data split" in block).splitlines()
        assert own[0] == ". .venv/bin/activate"
        assert [line.split()[1] for line in own[1:]] == ["data", "init", "train", "translate"]


def test_the_address_of_the_repository_is_set_once_before_the_command_that_uses_it() -> None:
    for text in (ENGLISH, KOREAN):
        assert [line for line in text.splitlines() if "REPOSITORY" in line] == [
            "REPOSITORY=",
            'git clone "$REPOSITORY" manyheads && cd manyheads',
        ]
    assert [path for path in (ROOT / "docs").rglob("*.md") if "REPOSITORY" in path.read_text("utf-8")] == []
