"""The number of updates that fit into `training.max_minutes`, measured at the start of training.

The minutes count from the start of the command to its end: reading the text, training the tokenizer, timing a
validation, updates, validations, checkpoints, and the averaging of checkpoints. Of all that comes before the first
update, at most half of the limit counts. When updates or validations turn out slower or faster than planned, the
plan is shortened, or lengthened up to the number of updates that the configuration asks for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from manyheads.config.schema import MeasuredConfig, TrainingConfig
from manyheads.training.costs import MUCH_VALIDATION, Costs, expectation, minutes_text, validations
from manyheads.training.progress import RECENT

if TYPE_CHECKING:
    from manyheads.training.trainer import Trainer

__all__ = [
    "WARM_UPDATES",
    "TimeLimit",
    "TimedValidation",
    "fit_steps",
    "sampled_validation",
    "time_validation",
]

# The first WARM_UPDATES are not timed. At least MEASURED_UPDATES are timed, for MEASURED_SHARE of the whole time or
# until the warm-up ends, because after it the learning rate depends on the number of steps. After LATE_SHARE of the
# whole time, fewer updates are enough; after VERY_LATE_SHARE, one is.
WARM_UPDATES, MEASURED_UPDATES, MEASURED_SHARE, LATE_SHARE, VERY_LATE_SHARE = 3, 27, 0.02, 0.25, 0.6
PREPARATION_SHARE = 0.5  # share of the whole time that the preparation can use up
FEW_UPDATES, MORE_UPDATES = 100, 300  # below FEW_UPDATES, a warning names the minutes for MORE_UPDATES
DEVIATION = 0.02  # share of the time by which the plan may miss it before it is shortened or lengthened
SAID_SHARE = 0.9  # a plan is reported again once it, or the plan last reported, is at most this share of the other
LAST_OVERSHOOT = 0.05  # share of the time by which the averaging of checkpoints at the end may exceed it
SAMPLES = (16, 4, 1)  # to time a validation, one example in so many is validated, as long as the time allows
SAMPLE_SHARE = 0.01  # share of the whole time that a larger sample may take
LONG_SAMPLE = 3.0  # times this share, after which the first sample is the only one


def sampled_validation(seconds_of: Callable[[int], float], longest: float) -> float:
    """Return the seconds of a validation, from larger and larger samples until the next would take too long.

    Args:
        seconds_of: validates one example in n, and returns the estimated seconds of a whole validation.
        longest: seconds that a sample may take; the first sample may take longer.
    """
    seconds = seconds_of(SAMPLES[0])  # compiles and allocates too: an estimate only if time is short
    if seconds / SAMPLES[0] > LONG_SAMPLE * longest:
        return seconds
    seconds = 0.0
    for every in SAMPLES:
        if seconds / every > longest:
            break
        seconds = seconds_of(every)
    return seconds


class TimedValidation(Protocol):
    """A validation whose time can be estimated, and limited by validating on fewer pairs.

    Attributes:
        size: number of pairs whose loss is measured, and of sentences that are translated.
    """

    @property
    def size(self) -> Sequence[int]:
        """Number of pairs and number of sentences."""
        ...

    @size.setter
    def size(self, size: Sequence[int]) -> None: ...

    def seconds(self, every: int) -> float:
        """Return the estimated seconds of a validation, from one example in `every`."""
        ...

    def shorten(self, seconds: float) -> float:
        """Limit a validation to the pairs that `seconds` allow; return the estimated seconds of a validation."""
        ...


class TimeLimit:
    """The time limit of a training: the time used up, and the measured times of updates, validations, checkpoints.

    Attributes:
        scores: measured scores of a recipe that this training can expect, or None.
        limited: whether there is a limit.
        allowed: the time limit in seconds.
        prepared: seconds that the preparation took.
        before: seconds used by earlier commands.
        used: seconds used before `start`, by the preparation up to its share and by earlier commands.
        start: reading of the clock after which all seconds count.
        timed: seconds and target tokens of each update, until the plan is made.
        update: seconds of an update, averaged over about the last minute once the plan is made.
        validation, saving: seconds of the last validation and of the last checkpoint.
        size: `TimedValidation.size` according to a restored state, or None.
        reported: number of updates of the plan that was last reported, or None.
    """

    def __init__(
        self, config: TrainingConfig, measured: MeasuredConfig | None = None, prepared: float = 0.0
    ) -> None:
        self.config = config
        self.scores = measured
        self.limited = config.max_minutes is not None
        self.allowed = 60 * (config.max_minutes or 0.0)
        self.prepared = prepared
        self.before = 0.0
        self.used = min(prepared, PREPARATION_SHARE * self.allowed)
        self.start = time.perf_counter()
        self.timed: list[tuple[float, float]] = []
        self.update = self.validation = self.saving = 0.0
        self.size: Sequence[int] | None = None
        self.reported: int | None = None

    @property
    def elapsed(self) -> float:
        """The seconds of the limit that are used up."""
        return self.used + time.perf_counter() - self.start

    def begin(self) -> None:
        """Count all time since the start of this command as preparation."""
        now = time.perf_counter()
        self.prepared += now - self.start
        self.used = self.before + min(self.prepared, PREPARATION_SHARE * self.allowed)
        self.start = now

    def affords(self, seconds: float) -> bool:
        """Return whether a last step of `seconds` fits into the limit."""
        return not self.limited or self.elapsed + seconds <= (1 + LAST_OVERSHOOT) * self.allowed

    def state(self, validation: TimedValidation | None) -> dict[str, Any]:
        """Return the state that resuming needs; empty without a limit."""
        if not self.limited:
            return {}
        size = None if validation is None else [*validation.size]
        return {"used": self.elapsed, "costs": asdict(self.costs()), "size": size}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the state that `state` returned; its used time is added to the time of this command."""
        if self.limited and state:
            self.before = state["used"]
            self.used += self.before
            self.size = state["size"]
            costs = Costs(**state["costs"])
            self.update, self.validation, self.saving = costs.update, costs.validation, costs.saving

    def add(self, seconds: float, tokens: float) -> None:
        """Record the seconds and the target tokens of an update before the plan is made."""
        self.timed.append((seconds, tokens))
        if self.measured:
            self.update = sum(seconds for seconds, _ in self.measured) / len(self.measured)

    def follow(self, seconds: float) -> None:
        """Update the mean seconds of an update, once the plan is made."""
        self.update -= math.expm1(-seconds / RECENT) * (seconds - self.update)

    @property
    def measured(self) -> list[tuple[float, float]]:
        """The timed updates without the first ones, which are slower; if there are no others, the last one."""
        return self.timed[WARM_UPDATES:] or self.timed[-1:]

    @property
    def speed(self) -> float:
        """The training speed in target tokens a second."""
        return sum(tokens for _, tokens in self.measured) / sum(seconds for seconds, _ in self.measured)

    def ready(self, step: int) -> bool:
        """Return whether enough updates were timed to plan, after `step` updates."""
        if not self.timed or self.elapsed >= VERY_LATE_SHARE * self.allowed:
            return bool(self.timed)
        late = self.elapsed + self.validation >= LATE_SHARE * self.allowed  # including the next validation
        count = len(self.timed) - WARM_UPDATES
        spent = sum(seconds for seconds, _ in self.timed[WARM_UPDATES:])
        long_enough = spent >= MEASURED_SHARE * self.allowed or step >= self.config.warmup_steps
        return count > 0 and (late or (count >= MEASURED_UPDATES and long_enough))

    def costs(self) -> Costs:
        """Return the measured seconds of an update, a validation and a checkpoint."""
        return Costs(self.update, self.validation, self.saving)

    def fitting(self, step: int, most: int) -> int:
        """Return how many updates fit into the limit after `step` updates, at most `most`."""
        return self.costs().fitting(self.config, most, done=step, seconds=self.elapsed)

    def adjusted(self, step: int, planned: int, most: int) -> int:
        """Return the number of updates to plan after `step` updates: the planned one, unless it fits badly."""
        total = self.costs().total(self.config, planned, done=step, seconds=self.elapsed)
        if total > (1 + DEVIATION) * self.allowed:
            return self.fitting(step, planned)
        return self.fitting(step, most) if total < (1 - DEVIATION) * self.allowed else planned

    def share_of_validation(self, step: int, most: int) -> float:
        """Return the seconds that one validation may take, so that all together take `MUCH_VALIDATION` at most."""
        free = (1 - MUCH_VALIDATION) * self.allowed - self.elapsed
        updates = step + max(0, int(free / self.update)) if self.update > 0 else most
        planned = validations(self.config, max(1, min(most, updates)))
        share = min(MUCH_VALIDATION * self.allowed, self.allowed - self.elapsed)
        return max(0.0, share / planned - self.saving)

    def messages(self, updates: int, most: int) -> Iterator[str]:
        """Yield the plan with its expected score, and warnings of few updates and of much validation.

        Args:
            updates: number of updates planned.
            most: number of updates that the configuration asks for.
        """
        costs, config, last = self.costs(), self.config, self.scores.updates[-1] if self.scores else 0
        if self.prepared > PREPARATION_SHARE * self.allowed:
            command_seconds = self.prepared + (1 - PREPARATION_SHARE) * self.allowed
            yield (
                f"the preparation took {self.prepared / 60:.1f} of the {minutes_text(config.max_minutes or 0)}; "
                f"training gets half of them, and the command takes {command_seconds / 60:.1f} minutes"
            )
        of_recipe = f" of {last:,}" if updates < last else ""
        expected = f": {expectation(self.scores, costs, config, updates)}" if self.scores else ""
        yield (
            f"{self.speed:,.0f} target tokens/s, {costs.validation:.1f} s a validation: {updates:,}{of_recipe} "
            f"updates fit into {minutes_text(config.max_minutes or 0)}{expected}"
        )
        warning = costs.warning(config, updates)
        if warning is not None:
            yield warning
        if updates < min(FEW_UPDATES, most):
            more = min(MORE_UPDATES, most)
            total = costs.total(config, more, seconds=self.prepared)
            yield (
                f"warning: {updates:,} updates teach a new model next to nothing. For {more:,} at this speed, "
                f"set training.max_minutes = {math.ceil(total / 60)}"
            )


def fit_steps(trainer: Trainer, seconds: float, tokens: float, *, compiled: bool) -> None:
    """Time an update; after enough of them, plan the number of updates that fit, and later adjust the plan.

    Args:
        trainer: trainer with a time limit.
        seconds: time that the update took.
        tokens: its target tokens in all processes.
        compiled: whether this process compiled layers during the update; such an update is not timed.
    """
    progress, limit, world = trainer.progress, trainer.limit, trainer.world
    if not progress.fixed:
        if not world.total([compiled])[0]:
            limit.add(seconds, tokens)
        if world.gather(limit.ready(progress.step))[0]:
            plan_steps(trainer)
        return
    limit.follow(seconds)
    planned = progress.total_steps
    progress.total_steps = world.gather(limit.adjusted(progress.step, planned, trainer.most_steps))[0]
    limit.reported = limit.reported or planned
    fewer, more = sorted((progress.total_steps, limit.reported))
    if fewer <= SAID_SHARE * more:
        trainer.listener.message(
            f"updates or validations have become {'slower' if progress.total_steps == fewer else 'faster'}: "
            f"{progress.total_steps:,} instead of {limit.reported:,} updates fit into "
            f"{minutes_text(trainer.config.max_minutes or 0)}"
        )
        limit.reported = progress.total_steps


def plan_steps(trainer: Trainer) -> None:
    """Plan the number of updates that fit into the limit; save a checkpoint, to time it."""
    progress, limit, world = trainer.progress, trainer.limit, trainer.world
    trainer.save()
    if trainer.timed_validation is not None:
        share = world.gather(limit.share_of_validation(progress.step, progress.total_steps))[0]
        limit.validation = trainer.timed_validation.shorten(share)
    most = progress.total_steps
    progress.total_steps = world.gather(limit.fitting(progress.step, most))[0]
    progress.fixed, limit.reported = True, progress.total_steps
    for message in limit.messages(progress.total_steps, most):
        trainer.listener.message(message)


def time_validation(trainer: Trainer) -> float:
    """Return the seconds that a validation takes; raises `Interrupted` in all processes on request."""
    timed = trainer.timed_validation
    start = time.perf_counter()
    if timed is None:
        trainer.score()
        return time.perf_counter() - start

    def agreed_seconds(every: int) -> float:  # estimated by the first process
        return trainer.world.gather(timed.seconds(every))[0]

    with trainer.validating(), trainer.listener.phase("timing a validation"):
        return sampled_validation(agreed_seconds, SAMPLE_SHARE * trainer.limit.allowed)
