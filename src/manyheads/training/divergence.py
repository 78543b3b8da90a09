"""Whether training diverges: a loss far above what it was a moment ago."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["DivergenceDetector"]

SETTLED = 5  # log points before anything is said
MEMORY = 20  # log points that the running mean remembers, about
FAR = 1.0  # nats above the running mean: the perplexity has grown e times


class DivergenceDetector:
    """The running mean of the loss at log points, in nats per token, and whether the last one was far above it."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.points = 0
        self.above = False

    def see(self, loss: float) -> bool:
        """Take in the loss of a log point; True when training has just begun to diverge.

        What is far above the mean does not enter it, nor does what is not finite: that has a count of its own.
        """
        if not math.isfinite(loss):
            return False
        before, self.above = self.above, self.points >= SETTLED and loss > self.mean + FAR
        if not self.above:
            self.points = min(self.points + 1, MEMORY)
            self.mean += (loss - self.mean) / self.points
        return self.above and not before

    def state(self) -> dict[str, Any]:
        """What resuming needs."""
        return {"mean": self.mean, "points": self.points, "astray": self.above}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.mean, self.points, self.above = state["mean"], state["points"], state["astray"]
