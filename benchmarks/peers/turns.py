"""The process of a contender: a training program that works only in its turns.

The other side is `lane.py`. Only the standard library is used, as this also runs in the environments of others.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


class Turns:
    """Holds a training program between its turns, and reports the figures of each.

    The program calls `before_update` where an update begins. A turn is some whole updates: its time runs from the
    beginning of its first update to where the next one would begin, so the making of batches is in it.
    """

    def __init__(self, validate: Callable[[], float] | None = None) -> None:
        """Take over standard output; from here on what the program prints goes to standard error.

        Args:
            validate: tells the validation loss of the weights as they are, in nats a token.
        """
        self.answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self.validate = validate
        self.left = self.tokens = 0
        self.start = time.perf_counter()

    def before_update(self, target_tokens: int) -> None:
        """Wait for the next turn if this one is over; count the real target tokens of the update that begins."""
        if self.left == 0:
            seconds = time.perf_counter() - self.start
            self.answer(seconds=seconds, tokens=self.tokens, mebibytes=peak_memory())
            self.left = self.next_turn()
            self.tokens, self.start = 0, time.perf_counter()
        self.left -= 1
        self.tokens += target_tokens

    def next_turn(self) -> int:
        """Carry out orders until the next turn; return its number of updates."""
        for line in sys.stdin:
            command, _, updates = line.partition(" ")
            if command == "work":
                return int(updates)
            assert self.validate is not None
            self.answer(nll=self.validate())
        os._exit(0)  # nobody asks any more; a training program would save and score first

    def answer(self, **values: float) -> None:
        """Send an answer to the measuring process."""
        self.answers.write(json.dumps(values) + "\n")


def peak_memory() -> float:
    """The largest resident size of this process so far, in MiB.

    Linux hands the figure of getrusage down from the process that started this one, so it is the second choice.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
