"""Learning-rate schedules: functions of the step, and for `plateau` of the validation loss.

`noam` is the formula of section 5.3 of Vaswani et al. (2017), times `learning_rate`. All others rise linearly to
`learning_rate` during the warm-up; then `inverse-sqrt` falls with the root of the step, `linear` and `cosine` fall
to 0 at the last step, `constant` stays, and `plateau` is multiplied by 0.9 whenever `plateau_patience`
validations in a row brought no better loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from manyheads.config.schema import TrainingConfig

_PLATEAU_FACTOR = 0.9


class Schedule:
    """The learning rate of each update.

    Attributes:
        scale: the factor by which plateaus have reduced the rate, 1 at the start.
        waited: number of validations since the best loss.
        best: the best validation loss so far, or None.
    """

    def __init__(self, config: TrainingConfig, d_model: int) -> None:
        self.config = config
        self.d_model = d_model
        self.scale = 1.0
        self.waited = 0
        self.best: float | None = None

    def rate(self, step: int, total_steps: int) -> float:
        """Return the learning rate of update `step`, the first being 1, of `total_steps`."""
        config = self.config
        warmup = config.warmup_steps
        if config.schedule == "noam":
            rising = step * warmup**-1.5 if warmup else math.inf
            return config.learning_rate * self.d_model**-0.5 * min(step**-0.5, rising)
        if step < warmup:
            return config.learning_rate * step / warmup
        return config.learning_rate * self.scale * self.fall(step, total_steps)

    def fall(self, step: int, total_steps: int) -> float:
        """Return the rate after the warm-up as a share of the peak, 0 to 1."""
        warmup = max(1, self.config.warmup_steps)
        done = min(1.0, (step - warmup) / max(1, total_steps - warmup))
        match self.config.schedule:
            case "inverse-sqrt":
                return math.sqrt(warmup / step)
            case "linear":
                return 1.0 - done
            case "cosine":
                return 0.5 * (1.0 + math.cos(math.pi * done))
            case "constant" | "plateau" | "noam":
                return 1.0

    def validated(self, loss: float) -> None:
        """Update a plateau schedule with a validation loss."""
        if self.config.schedule != "plateau":
            return
        if self.best is None or loss < self.best:
            self.best, self.waited = loss, 0
            return
        self.waited += 1
        if self.waited >= self.config.plateau_patience:
            self.scale, self.waited = self.scale * _PLATEAU_FACTOR, 0

    def state(self) -> dict[str, float | None]:
        """Return the state that resuming needs."""
        return {"scale": self.scale, "waited": self.waited, "best": self.best}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the state that `state` returned."""
        self.scale, self.waited, self.best = state["scale"], state["waited"], state["best"]
