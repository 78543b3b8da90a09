"""The seconds of updates, validations and checkpoints, and how many updates fit into `max_minutes`.

`training.timing` measures the costs at the start of training; `manyheads doctor` estimates them before it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from manyheads.config.schema import MeasuredConfig, TrainingConfig

__all__ = ["MUCH_VALIDATION", "Costs", "expectation", "minutes_text", "validations"]

MUCH_VALIDATION = 0.25  # share of validation in the time limit, above which fewer pairs are validated


@dataclass(frozen=True)
class Costs:
    """The seconds that training takes on this machine.

    Attributes:
        update: seconds of one update.
        validation: seconds of one validation.
        saving: seconds of one checkpoint.
    """

    update: float
    validation: float = 0.0
    saving: float = 0.0

    def total(self, config: TrainingConfig, updates: int, *, done: int = 0, seconds: float = 0.0) -> float:
        """Return the seconds of a training of `updates` updates.

        Args:
            config: settings of the training.
            updates: number of updates.
            done: number of updates done, the last of which is not validated yet.
            seconds: time used up to now, with all validations and checkpoints.
        """
        checks = validations(config, updates) - max(0, done - 1) // config.save_every
        return seconds + (updates - done) * self.update + checks * (self.validation + self.saving)

    def checking(self, config: TrainingConfig, updates: int) -> float:
        """Return the seconds of all validations and checkpoints, the average of checkpoints at the end included."""
        return validations(config, updates) * (self.validation + self.saving)

    def fitting(self, config: TrainingConfig, most: int, *, done: int = 0, seconds: float = 0.0) -> int:
        """Return how many updates fit into `max_minutes`: at least those done, at most `most`."""
        allowed = 60 * (config.max_minutes or math.inf)
        counts = range(done + 1, max(done, most) + 1)
        return done + bisect_right(
            counts, allowed, key=lambda count: self.total(config, count, done=done, seconds=seconds)
        )

    def warning(self, config: TrainingConfig, updates: int) -> str | None:
        """Return a warning with the setting to change if validation takes much of `max_minutes`, else None."""
        allowed, cost = 60 * (config.max_minutes or math.inf), self.validation + self.saving
        spent = self.checking(config, updates)
        if spent <= MUCH_VALIDATION * allowed:
            return None
        fewer = int(MUCH_VALIDATION * allowed / cost) - (config.average_checkpoints > 1)
        cure = "validate on less text: a smaller training.valid_sentences, a smaller data.valid"
        if fewer >= 1 and self.update > 0:
            every = math.ceil((1 - MUCH_VALIDATION) * allowed / self.update / fewer)
            if every > config.save_every:
                cure = f"set training.save_every = {every}, or {cure}"
        return (
            f"warning: validation and saving take {cost:.1f} s each time, {spent / allowed:.0%} of the "
            f"{minutes_text(config.max_minutes or 0)}. To have more of it for training, {cure}."
        )


def validations(config: TrainingConfig, updates: int) -> int:
    """Return the number of validations of a training, including the validation of averaged checkpoints."""
    planned = math.ceil(updates / config.save_every)
    return planned + (config.average_checkpoints > 1 and planned > 1)


def expectation(measured: MeasuredConfig, costs: Costs, config: TrainingConfig, updates: int) -> str:
    """Return the expected score after `updates` updates, and the minutes that the recipe's result takes here."""
    last, best = measured.updates[-1], measured.scores[-1]
    minutes = math.ceil(costs.total(config, last) / 60)
    recipe = f"{minutes_text(minutes)} here give the recipe's result"
    if updates >= last:
        return f"the recipe's {best:.1f} {measured.name} took {last:,}"
    score = measured.score_after(updates)
    if score is None:
        instead = f" instead of {best:.1f}" if len(measured.updates) > 1 else ""
        return f"expect less than {measured.scores[0]:.1f} {measured.name}{instead}; {recipe}"
    digits = 0 if round(best) - round(score) >= 2 else 1
    return f"expect about {score:.{digits}f} {measured.name} instead of {best:.{digits}f}; {recipe}"


def minutes_text(minutes: float) -> str:
    """Return a number of minutes with its unit."""
    return f"{minutes:g} minute" if minutes == 1 else f"{minutes:,g} minutes"
