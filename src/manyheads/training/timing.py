"""The number of updates that fit into `training.max_minutes`, measured once at the start of training.

The minutes count from the first update to the end of the command: updates, validations, checkpoints, and the
averaging of checkpoints at the end. Reading the text and learning the vocabulary do not count.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyheads.config.schema import MeasuredConfig, TrainingConfig
from manyheads.training.snapshot import put_generators, take_generators

if TYPE_CHECKING:
    from manyheads.training.trainer import Trainer

__all__ = [
    "WARM_UPDATES",
    "Costs",
    "TimeLimit",
    "expectation",
    "fix_steps",
    "sampled_validation",
    "time_validation",
]

# The first WARM_UPDATES are not timed. At least MEASURED_UPDATES are timed, for MEASURED_SHARE of the whole time or
# until the warm-up ends, because after it the learning rate depends on the number of steps. After LATE_SHARE of the
# whole time, fewer updates are enough.
WARM_UPDATES, MEASURED_UPDATES, MEASURED_SHARE, LATE_SHARE = 3, 27, 0.02, 0.25
MUCH_VALIDATION = 0.25  # share of the time above which a warning suggests less validation
SAMPLES = (16, 4, 1)  # to time a validation, one example in so many is validated, as long as the time allows
SAMPLE_SHARE = 0.01  # share of the whole time that a larger sample may take


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
        """Return the seconds of a training of `updates` updates, of which the first `done` took `seconds`."""
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
    """Return the number of validations of a training, that of averaged checkpoints included."""
    planned = math.ceil(updates / config.save_every)
    return planned + (config.average_checkpoints > 1 and planned > 1)


def sampled_validation(seconds_of: Callable[[int], float], longest: float) -> float:
    """Return the seconds of a validation, from larger and larger samples until the next would take too long.

    Args:
        seconds_of: validates one example in n, and returns the estimated seconds of a whole validation.
        longest: seconds that a sample may take; the first sample may take longer.
    """
    seconds_of(SAMPLES[0])  # the first validation compiles code and allocates memory, and is not timed
    seconds = 0.0
    for every in SAMPLES:
        if seconds / every > longest:
            break
        seconds = seconds_of(every)
    return seconds


class TimeLimit:
    """Times the first updates, to find how many fit into the time limit.

    Attributes:
        scores: measured scores of a recipe that this training can expect, or None.
        allowed: the time limit in seconds.
        timed: seconds and target tokens of each update.
        validation, saving: seconds of one validation and of one checkpoint.
        spent: seconds that timing a validation and a checkpoint took.
    """

    def __init__(self, config: TrainingConfig, measured: MeasuredConfig | None = None) -> None:
        self.config = config
        self.scores = measured
        self.allowed = 60 * (config.max_minutes or 0.0)
        self.timed: list[tuple[float, float]] = []
        self.validation = self.saving = self.spent = 0.0

    def add(self, seconds: float, tokens: float) -> None:
        """Record the seconds and the target tokens of an update."""
        self.timed.append((seconds, tokens))

    @property
    def measured(self) -> list[tuple[float, float]]:
        """The timed updates without the first ones, which are slower."""
        return self.timed[WARM_UPDATES:]

    @property
    def speed(self) -> float:
        """The training speed in target tokens a second."""
        return sum(tokens for _, tokens in self.measured) / sum(seconds for seconds, _ in self.measured)

    def ready(self, step: int, seconds: float) -> bool:
        """Return whether enough updates were timed, when `step` updates have taken `seconds`."""
        checking = (step // self.config.save_every + 1) * self.validation  # the next one counted
        late = seconds + self.spent + checking >= LATE_SHARE * self.allowed
        spent = sum(seconds for seconds, _ in self.measured)
        long_enough = spent >= MEASURED_SHARE * self.allowed or step >= self.config.warmup_steps
        return bool(self.measured) and (late or (len(self.measured) >= MEASURED_UPDATES and long_enough))

    def costs(self) -> Costs:
        """Return the measured seconds."""
        update = sum(seconds for seconds, _ in self.measured) / len(self.measured)
        return Costs(update, self.validation, self.saving)

    def messages(self, updates: int) -> Iterator[str]:
        """Yield the plan with its expected score, and a warning where validation takes much of the time."""
        costs, config, last = self.costs(), self.config, self.scores.updates[-1] if self.scores else 0
        of_recipe = f" of {last:,}" if updates < last else ""
        expected = f": {expectation(self.scores, costs, config, updates)}" if self.scores else ""
        yield (
            f"{self.speed:,.0f} target tokens/s, {costs.validation:.1f} s a validation: {updates:,}{of_recipe} "
            f"updates fit into {minutes_text(config.max_minutes or 0)}{expected}"
        )
        warning = costs.warning(config, updates)
        if warning is not None:
            yield warning


def fix_steps(trainer: Trainer, seconds: float, tokens: float, *, compiled: bool) -> None:
    """Time an update, and once enough were timed, fix the number of updates that fit into `max_minutes`.

    A checkpoint is saved to time that too.

    Args:
        trainer: trainer with a time limit.
        seconds: time that the update took.
        tokens: its target tokens in all processes.
        compiled: whether this process compiled layers in it; such an update says nothing about later ones.
    """
    progress, limit, world = trainer.progress, trainer.limit, trainer.world
    if not world.total([compiled])[0]:
        limit.add(seconds, tokens)
    if not world.gather(limit.ready(progress.step, progress.seconds))[0]:
        return
    start = time.perf_counter()
    trainer.save(trainer.snapshot(), False)
    limit.saving = time.perf_counter() - start
    limit.spent += limit.saving
    spent = progress.seconds + limit.spent
    fitting = limit.costs().fitting(trainer.config, progress.total_steps, done=progress.step, seconds=spent)
    progress.total_steps = world.gather(fitting)[0]
    progress.fixed = True
    for message in limit.messages(progress.total_steps):
        trainer.listener.message(message)


def time_validation(trainer: Trainer) -> float:
    """Return the seconds that a validation takes; the state of the random generators is kept."""
    sample, generators = trainer.sample_validation, take_generators(trainer.device)

    def agreed_seconds(every: int) -> float:  # estimated by the first process
        assert sample is not None
        return trainer.world.gather(sample(every))[0]

    start = time.perf_counter()
    with trainer.validating():
        if sample is None:
            trainer.validate(trainer.progress.step)
            seconds = time.perf_counter() - start
        else:
            seconds = sampled_validation(agreed_seconds, SAMPLE_SHARE * trainer.limit.allowed)
    put_generators(generators, trainer.device)
    return seconds


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
