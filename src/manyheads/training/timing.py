"""How many updates fit into `training.max_minutes`: measured once at the start, so that a plan can be repeated.

The minutes count from the first update to the end of the command: updates, validations, checkpoints, and the
averaging of checkpoints at the end. Reading text and making the vocabulary come before.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from manyheads.config.schema import MeasuredConfig, TrainingConfig

__all__ = ["SAMPLE_SHARE", "WARM_UPDATES", "Costs", "TimeLimit", "expectation", "sampled_validation"]

# Updates left out, updates timed at least, and share of the whole time that is timed, unless the warm-up ends
# before: from there on the learning rate depends on the number of steps. When so large a share of the time has
# passed, fewer updates must do.
WARM_UPDATES, MEASURED_UPDATES, MEASURED_SHARE, LATE_SHARE = 3, 27, 0.02, 0.25
MUCH_VALIDATION = 0.25  # share of the time above which validation is warned about
SAMPLES = (16, 4, 1)  # one pair in so many is validated to time a validation, as long as the time allows
SAMPLE_SHARE = 0.01  # of the whole time that a larger sample may take


@dataclass(frozen=True)
class Costs:
    """Seconds that the parts of a training take on this machine.

    Attributes:
        update: one update.
        validation: one validation.
        saving: one checkpoint.
    """

    update: float
    validation: float = 0.0
    saving: float = 0.0

    def total(self, config: TrainingConfig, updates: int, *, done: int = 0, seconds: float = 0.0) -> float:
        """Return the seconds of a whole training of so many updates, of which those done took `seconds`."""
        return seconds + (updates - done) * self.update + self.checking(config, updates)

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
        """Return what to set when validation takes much of `max_minutes`; None where it does not."""
        allowed, once = 60 * (config.max_minutes or math.inf), self.validation + self.saving
        spent = self.checking(config, updates)
        if spent <= MUCH_VALIDATION * allowed:
            return None
        fewer = int(MUCH_VALIDATION * allowed / once) - (config.average_checkpoints > 1)
        cure = "validate on less text: a smaller training.valid_sentences, a smaller data.valid"
        if fewer >= 1 and self.update > 0:
            every = math.ceil((1 - MUCH_VALIDATION) * allowed / self.update / fewer)
            if every > config.save_every:
                cure = f"set training.save_every = {every}, or {cure}"
        return (
            f"warning: validation and saving take {once:.1f} s each time, {spent / allowed:.0%} of the "
            f"{minutes_text(config.max_minutes or 0)}. To have more of it for training, {cure}."
        )


def validations(config: TrainingConfig, updates: int) -> int:
    """Return how often a training of so many updates validates, that of averaged checkpoints included."""
    planned = math.ceil(updates / config.save_every)
    return planned + (config.average_checkpoints > 1 and planned > 1)


def sampled_validation(seconds_of: Callable[[int], float], longest: float) -> float:
    """Return the seconds of a validation, from larger and larger samples until the next would take too long.

    Args:
        seconds_of: validates one pair in n, and returns the seconds that all of them would take.
        longest: seconds that a sample may take, but for the first.
    """
    seconds_of(SAMPLES[0])  # code is compiled, memory is taken: only the first validation waits for that
    seconds = 0.0
    for every in SAMPLES:
        if seconds / every > longest:
            break
        seconds = seconds_of(every)
    return seconds


class TimeLimit:
    """A stopwatch for the first updates.

    Attributes:
        scores: measured ones that hold for this training, or None.
        validation, saving: seconds of one validation and of one checkpoint.
        spent: seconds that were needed to find out.
    """

    def __init__(self, config: TrainingConfig, measured: MeasuredConfig | None = None) -> None:
        self.config = config
        self.scores = measured
        self.allowed = 60 * (config.max_minutes or 0.0)  # seconds
        self.timed: list[tuple[float, float]] = []  # seconds and target tokens of each update
        self.validation = self.saving = self.spent = 0.0

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

    def ready(self, step: int, seconds: float) -> bool:
        """Whether enough updates were timed, `step` of them being done in that time."""
        checking = (step // self.config.save_every + 1) * self.validation  # the next one counted
        late = seconds + self.spent + checking >= LATE_SHARE * self.allowed
        spent = sum(seconds for seconds, _ in self.measured)
        long_enough = spent >= MEASURED_SHARE * self.allowed or step >= self.config.warmup_steps
        return bool(self.measured) and (late or (len(self.measured) >= MEASURED_UPDATES and long_enough))

    def costs(self) -> Costs:
        """Return what was measured."""
        update = sum(seconds for seconds, _ in self.measured) / len(self.measured)
        return Costs(update, self.validation, self.saving)

    def messages(self, updates: int) -> Iterator[str]:
        """Yield the plan with what to expect of it, and a warning where validation takes much of the time."""
        costs, config, last = self.costs(), self.config, self.scores.updates[-1] if self.scores else 0
        of_recipe = f" of {last:,}" if updates < last else ""
        told = f": {expectation(self.scores, costs, config, updates)}" if self.scores else ""
        yield (
            f"{self.speed:,.0f} target tokens/s, {costs.validation:.1f} s a validation: {updates:,}{of_recipe} "
            f"updates fit into {minutes_text(config.max_minutes or 0)}{told}"
        )
        warning = costs.warning(config, updates)
        if warning is not None:
            yield warning


def expectation(measured: MeasuredConfig, costs: Costs, config: TrainingConfig, updates: int) -> str:
    """Return what to expect of so many updates, and the minutes here in which the recipe's result is reached."""
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
