"""The commands of a page of the book, in order, and the output that the page shows for each.

A ```bash block holds commands alone. A ```console block holds commands behind the prompt `$ `, each above its
output. A ```text or ```json block right below either holds the output of the last command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = (
    "argos-translate", "cd", "curl", "dask", "docker", "echo", "eval", "git", "jupyter",
    "libretranslate", "make", "manyheads", "pip", "python", "srun", "sudo", "torchrun", "uv", "weblate",
    r"\. \.venv/bin/activate",
)  # fmt: skip
# The assignment of a variable also begins a command line, alone or before a program.
COMMAND_LINE = re.compile(
    rf"(?:\$ )?(?:\w+=(?:\$\(.*\)|\S*)(?: |$))*(?:{'|'.join(PROGRAMS)})(?: |$)|\w+=\$\(|[A-Z]+=$"
)


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page.

    Attributes:
        line: the number of its first line.
        language: the language behind the opening fence; may be empty.
        text: the content.
        follows: whether only blank lines and comments are between it and the block before.
    """

    line: int
    language: str
    text: str
    follows: bool

    @property
    def is_commands(self) -> bool:
        """Return whether its lines are commands that a reader types."""
        return self.language in ("", "bash", "console") and any(
            COMMAND_LINE.match(line) for line in self.text.split("\n")
        )


@dataclass(frozen=True)
class Command:
    """A command that a reader types.

    Attributes:
        line: the number of its line.
        text: the command without the prompt; continued lines are joined.
        shown: the output that the page shows; None if it shows none.
    """

    line: int
    text: str
    shown: str | None = None


def fences(page: Path) -> list[Fence]:
    """Return the fenced blocks of a page in order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        between = re.sub(r"<!--.*?-->", "", text[end : match.start()], flags=re.DOTALL)
        follows = bool(found) and not between.strip()
        found.append(Fence(text[: match.start()].count("\n") + 2, match["language"], match["text"], follows))
        end = match.end()
    return found


def commands(blocks: list[Fence]) -> list[Command]:
    """Return the commands of blocks, each with the output that is shown."""
    found: list[Command] = []
    after_commands = False
    for block in blocks:
        if block.is_commands:
            found += commands_of_block(block)
        elif after_commands and block.follows and block.language in ("", "text", "json"):
            found[-1] = replace(found[-1], shown=block.text)
        after_commands = block.is_commands
    return found


def commands_of_block(block: Fence) -> Iterator[Command]:
    """Yield the commands of one block, each with the lines below it as its output."""
    last: Command | None = None
    # A continued line is joined with the next one, and has the number of its first line.
    for number, line in joined_lines(block.text, block.line):
        if COMMAND_LINE.match(line):
            if last is not None:
                yield last
            last = Command(number, line.removeprefix("$ "))
        elif last is not None and line.strip() and not line.startswith("#"):
            last = replace(last, shown=f"{last.shown or ''}{line}\n")
    if last is not None:
        yield last


def joined_lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; a line that ends in a backslash is joined with the next one."""
    pending, start = "", first
    for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1]
            continue
        yield start, pending + line
        pending = ""
