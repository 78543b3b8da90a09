"""One page, worked through from top to bottom in a folder of its own."""

from __future__ import annotations

import json
import shutil
import traceback
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from tests.docs.commands import CANNOT_BE_RUN, Outcome, run, split
from tests.docs.console import Command
from tests.docs.outlines import missing, same_keys
from tests.docs.pages import Block, executed
from tests.docs.serve import serve

from manyheads.errors import MissingExtraError

__all__ = ["Desk"]


class Desk:
    """Where a page is worked through; the current directory.

    Attributes:
        page: it.
        wrong: what did not come as the page says.
        lacking: what is not installed here.
    """

    def __init__(self, page: Path) -> None:
        self.page = page
        self.placed = {path for path in Path().glob("*/*") if path.is_dir()}
        self.wrong: list[str] = []
        self.lacking: list[str] = []

    def work(self, steps: list[Command | Block], names: dict[str, Any]) -> None:
        """Run the commands and the Python of the page, in their order."""
        steps = sorted(steps, key=lambda one: one.line)
        for place, step in enumerate(steps):
            if isinstance(step, Command):
                self.type(step, [one for one in steps[place:] if isinstance(one, Command)])
            else:
                self.execute(step, names)

    def type(self, command: Command, on: list[Command]) -> None:
        """Run a command; `on` are it and those below. Lines of curl are run while the server above them runs."""
        cannot = command.text.startswith(tuple(CANNOT_BE_RUN)) and not command.text.startswith("docker")
        if command.text.startswith("curl") or cannot:
            return
        words, _ = split(command.text)
        if words[:2] == ["manyheads", "serve"] and words[2] != "keys":
            until = takewhile(lambda one: not one.text.startswith("manyheads serve"), on[1:])
            asked = [one for one in until if one.text.startswith("curl")]
            if asked and shutil.which("curl") is None:
                self.lacking.append("curl is not here")
                asked = []
            outcome, answers = serve(command.text, [one.text for one in asked])
            for one, answer in zip(asked, answers, strict=True):
                self.compare(one, answer)
        else:
            self.clear(folder_made(words))
            outcome = run(command.text)
        self.compare(command, outcome)

    def execute(self, block: Block, names: dict[str, Any]) -> None:
        """Run a block of Python."""
        where = f"{self.page.name}:{block.line}"
        try:
            done = executed(block, self.page, names)
        except MissingExtraError as lack:
            self.lacking.append(f"{where}: {lack}")
        except Exception:
            self.wrong.append(f"{where}\n{traceback.format_exc()}")
        else:
            if done.output is not None and not done.kept:
                self.wrong.append(f"{where} printed\n{done.printed}")

    def clear(self, made: Path | None) -> None:
        """Take away what lay where a command makes a folder before the page began: on the page it makes it."""
        if made in self.placed:
            shutil.rmtree(made)
            self.placed.remove(made)

    def compare(self, command: Command, outcome: Outcome) -> None:
        """Note what did not come."""
        where = f"{self.page.name}:{command.line}: {command.text}"
        words = command.text.split()
        if outcome.code == MissingExtraError.exit_code:
            self.lacking.append(f"{where}: {outcome.printed}")
            return
        right = {0, 1} if words[:2] == ["manyheads", "doctor"] else {0}  # 1: it has found something
        if outcome.code not in right or "This is a fault of manyheads" in outcome.printed:
            self.wrong.append(f"{where}\nended with {outcome.code}\n{outcome.printed}")
            return
        if {"--json", "--schema"} & set(words):
            json.loads(outcome.out)
        for option, file in pairwise(words):
            if option in ("-o", "--output") and words[0] != "docker" and not Path(file).exists():
                self.wrong.append(f"{where}\nwrote no {file}")
        if command.shown is None:
            return
        if command.shown.startswith("{"):
            lacking = [] if same_keys(command.shown, outcome.out) else [command.shown]
        else:
            lacking = missing(command.shown, outcome.printed)
        if lacking:
            self.wrong.append(f"{where}\ndid not print {lacking} but\n{outcome.printed}")


def folder_made(words: list[str]) -> Path | None:
    """The folder that a command makes, if it makes one."""
    words = words[words.index("manyheads") :] if "manyheads" in words else words
    match words[:3]:
        case ["manyheads", "train" | "demo" | "import", *_] if "-o" in words:
            return Path(words[words.index("-o") + 1])
        case ["manyheads", "train", config]:
            return Path("runs") / Path(config).stem
        case ["manyheads", "demo", *_] | ["make", "demo", *_]:
            return Path("runs/demo-de-en")
        case ["manyheads", "import", model, *_]:
            return Path("runs") / Path(model).name
        case ["manyheads", "data", "fetch"]:
            return Path("data") / words[3]
    return None
