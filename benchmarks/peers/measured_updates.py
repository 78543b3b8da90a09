"""Pause a training program between rounds, and report tokens, seconds and memory of each round.

This module runs in the process of a contender; `train_peers.py` is the measuring side. It imports only the
standard library, because toolkits with a Python of their own import it too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import TextIO

from resident import memory_mib


def answer_stream() -> TextIO:
    """Take over standard output for answers: what the program prints from now on goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def write_configuration(name: str, folder: Path, **more: object) -> Path:
    """Fill the settings of the comparison into the file of this name beside this module; return its copy."""
    shared = json.loads((folder / "settings.json").read_text())
    values = {**shared["model"], **shared["training"], **more}
    template = Template(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    words = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    path = folder / name
    path.write_text(template.substitute(words, folder=folder), encoding="utf-8")
    return path


class MeasuredUpdates:
    """Pauses a training program between rounds, and reports the figures of each round.

    The program calls `before_update` where an update begins. A round is a number of whole updates. The time of a
    round runs from the beginning of its first update to the beginning of the next, so it includes the time to make
    batches.
    """

    def __init__(self, validate: Callable[[], float] | None = None) -> None:
        """Take over standard output; `validate` returns the validation loss of the weights, in nats a token."""
        self.answers = answer_stream()
        self.validate = validate
        self.remaining = self.tokens = 0  # updates to come and target tokens so far in this round
        self.start = time.perf_counter()

    def before_update(self, target_tokens: int) -> None:
        """Wait for the next round if this one is over; the tokens are those of the update that begins."""
        if self.remaining == 0:
            seconds = time.perf_counter() - self.start
            self.answer(seconds=seconds, tokens=self.tokens, mebibytes=memory_mib())
            self.remaining = self.next_round()
            self.tokens, self.start = 0, time.perf_counter()
        self.remaining -= 1
        self.tokens += target_tokens

    def next_round(self) -> int:
        """Handle commands until the next round begins; return its number of updates."""
        for line in sys.stdin:
            command, _, updates = line.partition(" ")
            if command == "train":
                return int(updates)
            assert self.validate is not None
            self.answer(nll=self.validate())
        os._exit(0)  # the measuring process has ended; a training program would save and score first

    def answer(self, **values: float) -> None:
        self.answers.write(json.dumps(values) + "\n")
