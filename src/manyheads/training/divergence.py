"""Detection of divergence: a training loss far above its running mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["DivergenceDetector"]

SETTLED = 5  # log points before divergence can be reported
MEMORY = 20  # log points over which the running mean is taken, about
FAR = 1.0  # nats above the running mean at which training diverges: the perplexity has grown e times


class DivergenceDetector:
    """Compares the loss at each log point, in nats per token, with its running mean.

    Attributes:
        mean: the running mean of the losses, in nats per token.
        points: number of log points in the mean, at most `MEMORY`.
        above: whether the last loss was far above the mean.
    """

    def __init__(self) -> None:
        self.mean = 0.0
        self.points = 0
        self.above = False

    def observe(self, loss: float) -> bool:
        """Compare the loss of a log point with the mean; return True when training has just begun to diverge.

        A loss far above the mean does not enter the mean. A loss that is not finite is ignored, because skipped
        updates are counted elsewhere.
        """
        if not math.isfinite(loss):
            return False
        before, self.above = self.above, self.points >= SETTLED and loss > self.mean + FAR
        if not self.above:
            self.points = min(self.points + 1, MEMORY)
            self.mean += (loss - self.mean) / self.points
        return self.above and not before

    def state(self) -> dict[str, Any]:
        """Return the state that resuming needs."""
        return {"mean": self.mean, "points": self.points, "astray": self.above}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.mean, self.points, self.above = state["mean"], state["points"], state["astray"]
