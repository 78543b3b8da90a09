"""The program that offers the functions of bitext: how notes of sources and messages name it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bitext import __version__
from bitext.shell import command_line


@dataclass(frozen=True)
class Program:
    """A program with the commands `convert`, `split`, `clean` and `fetch`.

    Attributes:
        name, version: in the notes of the sources of a text.
        command: words before the name of a command.
    """

    name: str = "bitext"
    version: str = __version__
    command: tuple[str, ...] = ("bitext",)

    def line(self, *words: str | Path) -> str:
        """Return a command line to copy, such as `bitext split corpus.de corpus.en`."""
        return command_line(*self.command, *words)


BITEXT = Program()
