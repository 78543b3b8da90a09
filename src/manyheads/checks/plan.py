"""Learning rate, warm-up, epochs, model size, memory and time of a planned training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from manyheads.checks.catalogue import config_finding
from manyheads.config.schema import Config
from manyheads.training.schedule import Schedule
from transformer_doctor.report import Finding

# The peak that trains width 256 with 4,096 target tokens an update by Adam; it falls with the root of the width
# (section 5.3 of the paper) and rises with the root of the batch (Malladi et al. 2022). Muon's matrices take four
# times as much (design/optimiser.md).
_USUAL_RATE, _USUAL_WIDTH, _USUAL_BATCH, _MUON_FACTOR = 2e-3, 256, 4_096, 4.0
_LEAST_BATCH, _MOST_BATCH = 0.5, 4.0  # where the root of the batch no longer holds
# Multiples of the usual rate. Adam at 2.8 times trains, but badly (design/optimiser.md: perplexity 9.3 instead of
# 6.5).
_HIGH_RATE_FACTOR, _ERROR_RATE_FACTOR = 4.0, 10.0
_MIN_REACH_SHARE = 0.5  # least sum of all rates, as a share of the deviation that weights are drawn with
_LONG_WARM_UP = 0.5  # of all updates
_MAX_RATE_WITHOUT_WARM_UP = 5e-4  # rate up to which a post-norm model trains without a warm-up
_MANY_EPOCHS = 200
# Parameters a token of train. 9 in the recipe multi30k-de-en, 75 in that of a much-copied repository, which has to
# stop early.
_LARGE_RATIO, _TOO_LARGE_RATIO = 60, 300
GIB = 2**30
_DAY = 24 * 3600.0
_LONG_SECONDS, _VERY_LONG_SECONDS = 3 * _DAY, 30 * _DAY
DISTURBED = 0.85  # share of the processors below which other programs disturb a measurement
_USABLE = 0.9  # share of the free memory that may be needed


@dataclass(frozen=True)
class Plan:
    """Figures of a planned training with its text on this machine.

    Attributes:
        config: configuration of the training.
        steps: updates; None where only the minutes are fixed and no update was timed.
        epoch_steps: updates of one epoch.
        batch: target tokens an update (of a classification: texts).
        parameters: number of parameters of the model.
        tokens: number of tokens of train, on both sides, without marks.
        seconds: time of one update on this machine, None where none was timed.
        validation: seconds of one validation; 0 where none was timed.
        total: seconds of all updates and validations; None where no update was timed.
        memory, free: bytes that training needs at most, and free bytes of this machine; None where unknown.
        free_processors: share of the processors that other programs left while updates were timed; the times are
            those without them.
    """

    config: Config
    steps: int | None
    epoch_steps: int
    batch: float
    parameters: int
    tokens: int
    seconds: float | None = None
    validation: float = 0.0
    total: float | None = None
    memory: float | None = None
    free: float | None = None
    free_processors: float = 1.0

    @property
    def unit(self) -> str:
        """Return the unit of the size of a batch."""
        return "texts" if self.config.spec.reads_labels else "target tokens"

    def facts(self) -> dict[str, str]:
        """Return the plan for people, with the seconds of an update and of a validation."""
        facts = {}
        if self.steps is not None:
            epochs = self.steps / self.epoch_steps
            facts["updates"] = f"{self.steps:,} of {self.batch:,.0f} {self.unit}, {epochs:,.1f} epochs"
        if self.seconds is not None and self.total is not None:
            validation = f"with validations of {self.validation:.1f} s" if self.validation else "without validation"
            facts["time"] = f"{self.seconds:.2f} s an update here, about {duration(self.total)} {validation}"
            if self.free_processors < DISTURBED:
                facts["time"] += f"; more while other programs use {1 - self.free_processors:.0%} of the processors"
        if self.memory is not None:
            free = "" if self.free is None else f" of {self.free / GIB:.1f} GiB that are free"
            facts["memory"] = f"about {self.memory / GIB:.2f} GiB{free}"
        return facts


def duration(seconds: float) -> str:
    """Return a duration in seconds, minutes, hours or days as text."""
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds"


def _usual_rate(config: Config, batch: float) -> float:
    """Return the usual peak of the learning rate for such a model."""
    width = math.sqrt(_USUAL_WIDTH / config.model.d_model)
    size = min(_MOST_BATCH, max(_LEAST_BATCH, math.sqrt(batch / _USUAL_BATCH)))
    return _USUAL_RATE * width * size * (_MUON_FACTOR if config.training.optimizer == "muon" else 1.0)


def rate_findings(plan: Plan) -> Iterator[Finding]:
    """Yield a finding if the peak rate is too high, or the sum of all rates too low to move a weight."""
    config, training, steps = plan.config, plan.config.training, plan.steps
    if steps is None:
        return
    schedule = Schedule(training, config.model.d_model)
    peak = schedule.rate(min(steps, max(1, training.warmup_steps)), steps)
    usual = _usual_rate(config, plan.batch)
    evidence = (
        f"the learning rate reaches {peak:.2g}; with width {config.model.d_model}, {plan.batch:,.0f} {plan.unit} "
        f"an update and {training.optimizer} about {usual:.1g} is usual"
    )
    if peak > _HIGH_RATE_FACTOR * usual:
        yield config_finding("rate-too-high", evidence, "error" if peak > _ERROR_RATE_FACTOR * usual else "warning")
    if config.model.init_from is not None:
        return
    # Adam moves no weight by more than its rate in an update (Kingma and Ba 2015, section 2.1)
    sampled = range(1, steps + 1, max(1, steps // 1_000))
    reach = sum(schedule.rate(step, steps) for step in sampled) * steps / len(sampled)
    drawn = config.model.d_model**-0.5
    if reach < _MIN_REACH_SHARE * drawn:
        evidence += (
            f"; the rates of all {steps:,} updates add up to {reach:.2g}, and weights are drawn with a "
            f"deviation of {drawn:.2g}"
        )
        yield config_finding("rate-too-low", evidence)


def epoch_findings(plan: Plan) -> Iterator[Finding]:
    """Yield findings about warm-up, too few or very many epochs, and validation at the end only."""
    training, steps = plan.config.training, plan.steps
    if steps is None:
        return
    warm_up, rate = training.warmup_steps, training.learning_rate
    if warm_up > _LONG_WARM_UP * steps:
        evidence = f"{warm_up:,} updates of warm-up, {steps:,} in all"
        yield config_finding("warm-up-too-long", evidence, None if warm_up >= steps else "warning")
    model = plan.config.model
    if model.norm == "post" and warm_up == 0 and rate > _MAX_RATE_WITHOUT_WARM_UP and model.init_from is None:
        yield config_finding("post-norm-without-warm-up", f"post-norm, no warm-up, a learning rate of {rate:g}")
    epochs = steps / plan.epoch_steps
    evidence = f"{steps:,} updates are {epochs:,.1f} epochs of {plan.epoch_steps:,} updates"
    if steps < plan.epoch_steps:
        yield config_finding("less-than-an-epoch", evidence)
    if epochs > _MANY_EPOCHS and training.patience is None:
        yield config_finding("very-many-epochs", f"{evidence}, and training.patience is not set")
    if training.save_every >= steps and steps > plan.epoch_steps:
        evidence = f"training.save_every = {training.save_every:,} of {steps:,} updates"
        yield config_finding("best-never-chosen", evidence)


def size_findings(plan: Plan) -> Iterator[Finding]:
    """Yield a finding if the model is too large for its text."""
    ratio = plan.parameters / max(1, plan.tokens)
    if plan.config.model.init_from is None and ratio > _LARGE_RATIO:
        evidence = f"{plan.parameters:,} parameters, {plan.tokens:,} tokens to learn from: {ratio:,.0f} for each"
        yield config_finding("model-too-large", evidence, None if ratio > _TOO_LARGE_RATIO else "note")


def machine_findings(plan: Plan) -> Iterator[Finding]:
    """Yield findings about memory and time on this machine."""
    if plan.memory is not None and plan.free is not None and plan.memory > _USABLE * plan.free:
        needed, free = plan.memory / GIB, plan.free / GIB
        evidence = f"about {needed:.1f} GiB are needed; of {free:.1f} GiB free, {_USABLE * free:.1f} can be used"
        yield config_finding("memory", evidence)
    if plan.steps is None or plan.seconds is None:
        return
    total = plan.steps * plan.seconds
    if total > _LONG_SECONDS:
        evidence = f"an update takes {plan.seconds:.2f} s here, all of them {total / _DAY:.1f} days"
        yield config_finding("takes-days", evidence, None if total > _VERY_LONG_SECONDS else "note")
