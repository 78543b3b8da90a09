"""Pause a training program between rounds, and report tokens, seconds and memory of each round.

This module runs in the process of a contender; `training_process.py` is the measuring side. It imports only the
standard library, because toolkits with a Python of their own import it too.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


class MeasuredUpdates:
    """Pauses a training program between rounds, and reports the figures of each round.

    The program calls `before_update` where an update begins. A round is a number of whole updates. The time of a
    round runs from the beginning of its first update to the beginning of the next, so it includes the time to make
    batches.
    """

    def __init__(self, validate: Callable[[], float] | None = None) -> None:
        """Take over standard output: what the program prints from now on goes to standard error.

        Args:
            validate: returns the validation loss of the current weights, in nats a token.
        """
        self.answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self.validate = validate
        self.remaining = self.tokens = 0  # updates to come and target tokens so far in this round
        self.start = time.perf_counter()

    def before_update(self, target_tokens: int) -> None:
        """Wait for the next round if this one is over.

        Args:
            target_tokens: number of target tokens of the update that begins, without padding.
        """
        if self.remaining == 0:
            seconds = time.perf_counter() - self.start
            self.answer(seconds=seconds, tokens=self.tokens, mebibytes=peak_memory())
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
        """Send an answer to the measuring process."""
        self.answers.write(json.dumps(values) + "\n")


def peak_memory() -> float:
    """Return the largest resident size of this process so far, in MiB.

    On Linux a process inherits the figure of getrusage from its parent, so /proc is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
