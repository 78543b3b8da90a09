"""The commands of a page of the book, in order, and what the page says that each prints.

A ```bash block holds commands alone. A ```console block holds commands behind the prompt `$ `, each above what it
prints. A ```text or ```json block right below either is what the last command prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["BEGINS", "Command", "Fence", "commands", "fences", "joined"]

FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = (
    "argos-translate", "argospm", "cd", "curl", "dask", "docker", "echo", "eval", "git", "jupyter",
    "libretranslate", "make", "manyheads", "pip", "srun", "sudo", "torchrun", "weblate", r"\. \.venv/bin/activate",
)  # fmt: skip
# Also a variable that is set, alone or for the program behind it.
BEGINS = re.compile(rf"(?:\$ )?(?:\w+=(?:\$\(.*\)|\S*)(?: |$))*(?:{'|'.join(PROGRAMS)})(?: |$)|\w+=\$\(")


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page.

    Attributes:
        line: where its first line stands.
        language: what stands behind the first fence; may be empty.
        text: what is in it.
        follows: whether nothing but blank lines and comments stands between it and the block before.
    """

    line: int
    language: str
    text: str
    follows: bool

    @property
    def is_commands(self) -> bool:
        """Whether a person types its lines."""
        return self.language in ("", "bash", "console") and any(
            BEGINS.match(line) for line in self.text.split("\n")
        )


@dataclass(frozen=True)
class Command:
    """A line that a person types.

    Attributes:
        line: where it stands.
        text: it, continued lines joined, without the prompt.
        shown: what the page says it prints; None where it says nothing.
    """

    line: int
    text: str
    shown: str | None = None


def fences(page: Path) -> list[Fence]:
    """The fenced blocks of a page, in order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in FENCE.finditer(text):
        between = re.sub(r"<!--.*?-->", "", text[end : match.start()], flags=re.DOTALL)
        follows = bool(found) and not between.strip()
        found.append(Fence(text[: match.start()].count("\n") + 2, match["language"], match["text"], follows))
        end = match.end()
    return found


def commands(blocks: list[Fence]) -> list[Command]:
    """The commands of blocks, with what is shown of each."""
    found: list[Command] = []
    typed = False
    for block in blocks:
        if block.is_commands:
            found += typed_lines(block)
        elif typed and block.follows and block.language in ("", "text", "json"):
            found[-1] = replace(found[-1], shown=block.text)
        typed = block.is_commands
    return found


def typed_lines(block: Fence) -> Iterator[Command]:
    """The commands of one block, with the lines between them."""
    last: Command | None = None
    # A line that is continued is one with the next; the line ends stay, for the numbers of the lines behind.
    for number, line in joined(block.text, block.line):
        if BEGINS.match(line):
            if last is not None:
                yield last
            last = Command(number, line.removeprefix("$ "))
        elif last is not None and line.strip() and not line.startswith("#"):
            last = replace(last, shown=f"{last.shown or ''}{line}\n")
    if last is not None:
        yield last


def joined(text: str, first: int) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, those that end in a backslash together with the next."""
    begun, start = "", first
    for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
        start = start if begun else number
        if line.endswith("\\"):
            begun += line[:-1]
            continue
        yield start, begun + line
        begun = ""
