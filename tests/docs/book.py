"""The pages of the documentation, and facts about them that the pages themselves do not state."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
from tests.docs.console import Command, Fence, commands, fences
from tools.korean import origin
from tools.pages import Block, blocks

from manyheads.cli.main import program

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "README.ko.md")),
    *sorted(page for page in DOCS.rglob("*.md") if "reference" not in page.relative_to(DOCS).parts),
]
# The Python of these pages, and of the folder tutorial/, is run by test_pages.py.
RUN_WHOLE = {"howto/from-your-tutorial.md"}

# The run that is copied to `runs/mine`, by page that does not train it.
RUNS_MINE = {
    "classifying.md": "runs/fine-tuned",
    "generating.md": "runs/writer",
    "benchmarks.md": "runs/multi30k-de-en",
    "howto/troubleshooting.md": "runs/multi30k-de-en",
    "howto/what-users-type.md": "runs/multi30k-de-en",
}
# The file names of the complete configurations of a page, in their order.
CONFIGURATION_FILES = {
    "classifying.md": ["classifier.toml", "encoder.toml"],
    "howto/fine-tune.md": ["my.toml", "bert.toml"],
    "howto/python-api.md": ["correction.toml"],
}
# Output blocks that are not right below their command: beginning of the block -> beginning of the command. Commands
# that only the running text mentions are written out here.
SEPARATE_OUTPUTS = {
    "500 sentences that were not in training:": "make demo",
    "as in models/minilm:": "manyheads train sst2-finetune",
    '{"task": "classification"': "manyheads evaluate runs/sst2-scratch --split valid --json",
}
# The examples in the last words of a verb's `--help`.
SHOWN = re.compile(r"Examples?:\n((?:[ \t]*\S.*\n?)+)")


def extension(name: str) -> ModuleType:
    """Import a module of docs/_ext, which Sphinx finds by its own path."""
    specification = importlib.util.spec_from_file_location(f"_ext_{name}", DOCS / "_ext" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def name_of(page: Path) -> str:
    """Return the path of a page below docs/, or below the root for others."""
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT))


def without_comment(text: str) -> str:
    """Return a command without its comment and without the language of a picture."""
    return re.sub(r"\s+#.*| --lang ko(?= -o |$)", "", text)


def unattached_blocks(page: Path) -> list[Fence]:
    """Return the blocks of a page that are neither code nor commands, nor right below either."""
    found = fences(page)
    return [
        block
        for block, above in zip(found, [None, *found], strict=False)
        if block.language in ("", "bash", "console", "text", "json")
        and not block.is_commands
        and not (above and block.follows and (above.is_commands or above.language == "python"))
    ]


def english_of(page: Path) -> Path | None:
    """Return the English page of a Korean page; None for an English page."""
    if page.name == "README.ko.md":
        return ROOT / "README.md"
    name = origin(page.read_text(encoding="utf-8"))
    return DOCS / name if name else None


def page_commands(page: Path) -> list[Command]:
    """Return the commands of a page with the shown output; for a Korean page, those missing on the English one."""
    found = commands(fences(page))
    english = english_of(page)
    if english:
        known = {without_comment(command.text) for command in commands(fences(english))}
        return [command for command in found if without_comment(command.text) not in known]
    for block in unattached_blocks(page):
        for text in (text for begin, text in SEPARATE_OUTPUTS.items() if block.text.startswith(begin)):
            index = next((index for index, command in enumerate(found) if command.text.startswith(text)), None)
            if index is None:
                found.append(Command(block.line, text, block.text))
            else:
                found[index] = Command(found[index].line, found[index].text, block.text)
    return found


def python_blocks(page: Path) -> list[Block]:
    """Return the Python blocks of a page, unless another test runs them."""
    name = name_of(page)
    elsewhere = name in RUN_WHOLE or name.startswith(("tutorial/", "ko/")) or name == "README.ko.md"
    return [] if elsewhere else blocks(page.read_text(encoding="utf-8"))


def configurations(page: Path) -> dict[str, str]:
    """Return the complete configurations of a page by file name."""
    whole = [block.text for block in fences(page) if block.language == "toml" and "task = " in block.text]
    return dict(zip(CONFIGURATION_FILES.get(name_of(page), []), whole, strict=True))


def examples(command: click.Command = program, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the examples that `--help` shows, each with its verb."""
    for lines in SHOWN.findall(command.epilog or ""):
        yield from ((" ".join(path), line.strip()) for line in lines.splitlines())
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from examples(verb, (*path, name))


def untested_examples() -> Iterator[tuple[str, str]]:
    """Yield the examples of `--help` whose combination of options no command of a page has."""
    shown = [verb_and_options(command.text) for page in PAGES for command in commands(fences(page))]
    for verb, text in examples():
        name, options = verb_and_options(text)
        if name and not any(name == other and options <= more for other, more in shown):
            yield verb, text


def verb_and_options(text: str) -> tuple[str, set[str]]:
    """Return the verb of a manyheads command (empty for other programs), and its options."""
    found = re.search(
        r"\bmanyheads ((?:data |serve keys )?(?:train average|doctor museum|[a-z-]+))", without_comment(text)
    )
    options = {word for word in without_comment(text).split() if word.startswith(("-", "<"))}
    return (found[1], options) if found else ("", options)
