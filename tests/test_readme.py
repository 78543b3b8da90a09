"""The README says what is so. Its commands, and those of the other pages, are run by `tests/docs`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENGLISH, KOREAN = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))


def blocks(text: str, language: str) -> list[str]:
    """Fenced code blocks of a language, "" being none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in fenced if named == language]


def test_both_languages_hold_the_same_code_and_the_same_output() -> None:
    assert blocks(ENGLISH, "python") == blocks(KOREAN, "python")
    printed = [[block for block in blocks(text, "text") if "nrefs" in block] for text in (ENGLISH, KOREAN)]
    assert printed[0] == printed[1] != []


def test_the_model_built_from_its_parts_has_the_shape_it_says() -> None:
    code = next(block for block in blocks(ENGLISH, "python") if "EncoderDecoder" in block)
    names: dict[str, object] = {}
    exec(re.sub(r"^(model\(.*)\.shape  # (.*)$", r"assert \1.shape == \2", code, flags=re.MULTILINE), names)
    assert "model" in names


def test_the_set_up_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in (ENGLISH, KOREAN):
        targets = re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE)
        assert {"demo", "test", "docs"} <= set(targets)
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_first_screens_hold_what_a_reader_decides_by() -> None:
    """What it is, two commands and their output, the own corpus in four lines, and what it does not do."""
    for text, limits in ((ENGLISH, "**What it does not do.**"), (KOREAN, "**하지 않는 것.**")):
        first = "\n".join(text.splitlines()[:58])
        assert "git clone " in first
        assert "make demo" in first
        assert limits in first
        own = next(block for block in blocks(first, "bash") if "data split" in block).splitlines()
        verbs = [line.split()[1] for line in own]
        assert verbs == ["data", "init", "train", "translate"]


def test_the_environment_is_activated_before_the_first_command_in_it() -> None:
    for text in (ENGLISH, KOREAN):
        assert text.index("make demo") < text.index(". .venv/bin/activate") < text.index("\nmanyheads data")
