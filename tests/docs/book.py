"""The pages of the book, and what is known of them beside what stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from tests.docs.console import Command, Fence, commands, fences
from tests.docs.korean import origin
from tests.docs.pages import Block, blocks

from manyheads.cli.main import program

__all__ = [
    "APART", "DOCS", "DRAWN", "FILES", "MINE", "PAGES", "ROOT", "RUN_WHOLE", "bare", "configurations", "english_of",
    "examples", "loose", "name_of", "python", "typed", "unseen_examples",
]  # fmt: skip

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "README.ko.md")),
    *sorted(page for page in DOCS.rglob("*.md") if "reference" not in page.relative_to(DOCS).parts),
]
# The Python of these pages, and of the folders explanation/ and tutorial/, is run by test_pages.py.
RUN_WHOLE = {"howto/from-your-tutorial.md", "howto/extend.md", "howto/choose-a-size.md"}

# What `runs/mine` is, where a page does not train it.
MINE = {
    "classifying.md": "runs/fine-tuned",
    "generating.md": "runs/writer",
    "benchmarks.md": "runs/multi30k-de-en",
    "speed.md": "runs/multi30k-de-en",
    "howto/troubleshooting.md": "runs/multi30k-de-en",
    "howto/what-users-type.md": "runs/multi30k-de-en",
}
# The files that the whole configurations of a page are, in their order.
FILES = {
    "classifying.md": ["classifier.toml", "encoder.toml"],
    "howto/fine-tune-bert.md": ["bert.toml"],
    "howto/fine-tune-opus-mt.md": ["my.toml"],
    "howto/two-million-pairs.md": ["two-million.toml"],
}
# Blocks that stand apart from the command which prints them, by how they begin: how that begins. One that stands in
# the text alone is whole here.
APART = {
    "500 sentences that were not in training:": "make demo",
    "as in models/minilm:": "manyheads train sst2-finetune",
    '{"task": "classification"': "manyheads evaluate runs/sst2-scratch --split valid --json",
}
# The examples in the last words of a verb's `--help`.
SHOWN = re.compile(r"Examples?:\n((?:[ \t]*\S.*\n?)+)")
# Blocks that nothing prints, by how they begin.
DRAWN = {
    "src/manyheads/": "the folders",
    "text ─ data/corpus": "the path of a sentence in training",
    "DIR ─ checkpoint": "the path of a sentence in use",
    "data/ko-en/train.ko.gz": "names of files",
    "runs/mine/\n": "the files of a run directory",
    "http://127.0.0.1:5000/?lang=ko": "an address of the page",
}


def name_of(page: Path) -> str:
    """Where a page stands in the book."""
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT))


def bare(text: str) -> str:
    """A command without the comment behind it, and without the language of a picture."""
    return re.sub(r"\s+#.*| --lang ko(?= -o |$)", "", text)


def loose(page: Path) -> list[Fence]:
    """Blocks of a page that are neither code, nor commands, nor right below either."""
    found = fences(page)
    return [
        block
        for block, above in zip(found, [None, *found], strict=False)
        if block.language in ("", "bash", "console", "text", "json")
        and not block.is_commands
        and not (above and block.follows and (above.is_commands or above.language == "python"))
    ]


def english_of(page: Path) -> Path | None:
    """The English page of a Korean one."""
    if page.name == "README.ko.md":
        return ROOT / "README.md"
    name = origin(page.read_text(encoding="utf-8"))
    return DOCS / name if name else None


def typed(page: Path) -> list[Command]:
    """The commands of a page, with all that is shown of each; of a Korean one, those that the English has not."""
    found = commands(fences(page))
    english = english_of(page)
    if english:
        known = {bare(one.text) for one in commands(fences(english))}
        return [one for one in found if bare(one.text) not in known]
    for block in loose(page):
        for text in (text for begin, text in APART.items() if block.text.startswith(begin)):
            place = next((place for place, one in enumerate(found) if one.text.startswith(text)), None)
            if place is None:
                found.append(Command(block.line, text, block.text))
            else:
                found[place] = Command(found[place].line, found[place].text, block.text)
    return found


def python(page: Path) -> list[Block]:
    """The Python of a page, unless it is run elsewhere."""
    name = name_of(page)
    elsewhere = name in RUN_WHOLE or name.startswith(("explanation/", "tutorial/", "ko/")) or name == "README.ko.md"
    return [] if elsewhere else blocks(page.read_text(encoding="utf-8"))


def configurations(page: Path) -> dict[str, str]:
    """The whole configurations of a page, by the names of their files."""
    whole = [block.text for block in fences(page) if block.language == "toml" and "task = " in block.text]
    return dict(zip(FILES.get(name_of(page), []), whole, strict=True))


def examples(command: click.Command = program, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The examples that `--help` shows, each with its verb."""
    for lines in SHOWN.findall(command.epilog or ""):
        yield from ((" ".join(path), line.strip()) for line in lines.splitlines())
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from examples(verb, (*path, name))


def unseen_examples() -> Iterator[tuple[str, str]]:
    """The examples of `--help` with options that no command of a page has."""
    shown = [form(one.text) for page in PAGES for one in commands(fences(page))]
    for verb, text in examples():
        name, options = form(text)
        if name and not any(name == other and options <= more for other, more in shown):
            yield verb, text


def form(text: str) -> tuple[str, set[str]]:
    """The verb of a command of ours, empty for others, and which options it has."""
    found = re.search(
        r"\bmanyheads ((?:data |bench |serve keys )?(?:train average|doctor museum|[a-z-]+))", bare(text)
    )
    options = {word for word in bare(text).split() if word.startswith(("-", "<"))}
    return (found[1], options) if found else ("", options)
