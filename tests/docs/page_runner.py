"""Run the commands and the Python of one page from top to bottom, in its own folder."""

from __future__ import annotations

import json
import shutil
import traceback
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from tests.docs.commands import CACHED_OUTCOMES, CANNOT_BE_RUN, Outcome, run, split
from tests.docs.console import Command
from tests.docs.outlines import missing, same_keys
from tests.docs.serve import serve
from tools.pages import Block, executed

from manyheads.errors import MissingExtraError


class PageRunner:
    """Runs a page in the current directory, and collects what differs from the page.

    Attributes:
        page: the page.
        prepared: the folders that existed before the page began.
        failures: the differences between the page and what its commands and code do.
        not_installed: the programs and packages that are missing here.
    """

    def __init__(self, page: Path) -> None:
        self.page = page
        self.prepared = {path for path in Path().glob("*/*") if path.is_dir()}
        self.failures: list[str] = []
        self.not_installed: list[str] = []

    def run_page(self, steps: list[Command | Block], names: dict[str, Any]) -> None:
        """Run the commands and the Python of the page in order."""
        steps = sorted(steps, key=lambda step: step.line)
        for index, step in enumerate(steps):
            if isinstance(step, Command):
                self.run_command(step, [later for later in steps[index:] if isinstance(later, Command)])
            else:
                self.run_python(step, names)

    def run_command(self, command: Command, following: list[Command]) -> None:
        """Run a command; `following` holds it and the commands below. Run lines of curl while their server runs."""
        cannot = command.text.startswith(tuple(CANNOT_BE_RUN)) and not command.text.startswith("docker")
        if command.text.startswith("curl") or cannot:
            return
        words, _ = split(command.text)
        if words[:2] == ["manyheads", "serve"] and words[2] != "keys":
            until = takewhile(lambda later: not later.text.startswith("manyheads serve"), following[1:])
            requests = [
                later
                for later in until
                if later.text.startswith("curl") and not later.text.startswith(tuple(CANNOT_BE_RUN))
            ]
            if requests and shutil.which("curl") is None:
                self.not_installed.append("curl is not installed")
                requests = []
            outcome, answers = serve(command.text, [request.text for request in requests])
            for request, answer in zip(requests, answers, strict=True):
                self.compare(request, answer)
        else:
            if command.text not in CACHED_OUTCOMES:
                self.remove_prepared(folder_created(words))
            outcome = run(command.text)
        self.compare(command, outcome)

    def run_python(self, block: Block, names: dict[str, Any]) -> None:
        """Run a block of Python."""
        where = f"{self.page.name}:{block.line}"
        try:
            done = executed(block, self.page, names)
        except MissingExtraError as error:
            self.not_installed.append(f"{where}: {error}")
        except Exception:
            self.failures.append(f"{where}\n{traceback.format_exc()}")
        else:
            if done.output is not None and not done.matches_page:
                self.failures.append(f"{where} printed\n{done.printed}")

    def remove_prepared(self, folder: Path | None) -> None:
        """Remove a prepared folder that a command of the page creates itself."""
        if folder in self.prepared:
            shutil.rmtree(folder)
            self.prepared.remove(folder)

    def compare(self, command: Command, outcome: Outcome) -> None:
        """Record the differences between the output on the page and that of the command."""
        where = f"{self.page.name}:{command.line}: {command.text}"
        words = command.text.split()
        if outcome.code == MissingExtraError.exit_code:
            self.not_installed.append(f"{where}: {outcome.printed}")
            return
        right = {0, 1} if words[:2] == ["manyheads", "doctor"] else {0}  # 1: the doctor has a finding
        if outcome.code not in right or "This is a fault of manyheads" in outcome.printed:
            self.failures.append(f"{where}\nended with {outcome.code}\n{outcome.printed}")
            return
        if {"--json", "--schema"} & set(words):
            json.loads(outcome.out)
        for option, file in pairwise(words):
            if option in ("-o", "--output") and words[0] != "docker" and not Path(file).exists():
                self.failures.append(f"{where}\nwrote no {file}")
        if command.shown is None:
            return
        if command.shown.startswith("{"):
            absent = [] if same_keys(command.shown, outcome.out) else [command.shown]
        else:
            absent = missing(command.shown, outcome.printed)
        if absent:
            self.failures.append(f"{where}\ndid not print {absent} but\n{outcome.printed}")


def folder_created(words: list[str]) -> Path | None:
    """Return the folder that a command creates; None if it creates none."""
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
