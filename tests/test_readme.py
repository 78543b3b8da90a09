"""The README and the other pages say what is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from manyheads.cli.main import Program, program
from manyheads.config.load import recipe_paths

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts),
]
ENGLISH, KOREAN = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))


def blocks(text: str, language: str) -> list[str]:
    """Fenced code blocks of a language, "" being none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in fenced if named == language]


def commands(text: str) -> list[list[str]]:
    """Every command line of the program in the plain blocks."""
    joined = [block.replace("\\\n", "") for block in blocks(text, "")]
    lines = [line.partition("  #")[0] for block in joined for line in block.split("\n")]
    calls = [re.match(r'(?:echo ".*" \| |(?:srun )?torchrun .* -m )?manyheads (.*)', line) for line in lines]
    return [shlex.split(call[1]) for call in calls if call]


def test_both_languages_hold_the_same_code_and_the_same_output() -> None:
    assert blocks(ENGLISH, "python") == blocks(KOREAN, "python")
    assert commands(ENGLISH) == commands(KOREAN)
    assert [block for block in blocks(ENGLISH, "") if "│" in block] == [
        block for block in blocks(KOREAN, "") if "│" in block
    ]


def test_the_model_built_from_its_parts_has_the_shape_it_says() -> None:
    code = next(block for block in blocks(ENGLISH, "python") if "EncoderDecoder" in block)
    names: dict[str, object] = {}
    exec(re.sub(r"^(model\(.*)\.shape  # (.*)$", r"assert \1.shape == \2", code, flags=re.MULTILINE), names)
    assert "model" in names


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(call, id=f"{page.parent.name}/{page.stem}: {' '.join(call)}")
        for page in PAGES
        for call in commands(page.read_text(encoding="utf-8"))
    ],
)
def test_every_command_of_a_page_is_one_that_exists(arguments: list[str]) -> None:
    context = program.make_context("manyheads", arguments[:1], resilient_parsing=True)
    assert isinstance(program, Program)
    command, rest = program.get_command(context, arguments[0]), arguments[1:]
    while isinstance(command, click.Group):
        command, rest = command.get_command(context, rest[0]), rest[1:]
    assert command is not None
    command.make_context(arguments[0], rest)  # unknown options raise
    named = [name for name in arguments[1:] if name.startswith("multi30k-")]
    assert all(name in recipe_paths() for name in named)


def test_the_set_up_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in (ENGLISH, KOREAN):
        for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
