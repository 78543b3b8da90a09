"""How many updates fit into `training.max_minutes`: measured once at the start, so that a plan can be repeated."""

from __future__ import annotations

from manyheads.config.schema import TrainingConfig

__all__ = ["WARM_UPDATES", "TimeLimit"]

# Updates left out, updates timed at least, and share of the whole time that is timed, unless the warm-up ends
# before: from there on the learning rate depends on the number of steps.
WARM_UPDATES, MEASURED_UPDATES, MEASURED_SHARE = 3, 27, 0.02


class TimeLimit:
    """A stopwatch for the first updates."""

    def __init__(self, config: TrainingConfig) -> None:
        self.allowed = 60 * (config.max_minutes or 0.0)  # seconds
        self.warmup_steps = config.warmup_steps
        self.timed: list[tuple[float, float]] = []  # seconds and target tokens of each update

    def add(self, seconds: float, tokens: float) -> None:
        """Time an update."""
        self.timed.append((seconds, tokens))

    @property
    def measured(self) -> list[tuple[float, float]]:
        """The updates that count."""
        return self.timed[WARM_UPDATES:]

    @property
    def speed(self) -> float:
        """Target tokens a second."""
        return sum(tokens for _, tokens in self.measured) / sum(seconds for seconds, _ in self.measured)

    def fitting(self, step: int, seconds: float) -> int | None:
        """How many updates fit in all after `step` updates in that time; None as long as it is too early to say."""
        spent = sum(seconds for seconds, _ in self.measured)
        enough = spent >= MEASURED_SHARE * self.allowed or step >= self.warmup_steps
        if len(self.measured) < MEASURED_UPDATES or not enough:
            return None
        return step + max(0, int((self.allowed - seconds) / (spent / len(self.measured))))
