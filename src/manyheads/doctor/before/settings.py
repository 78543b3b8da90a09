"""Findings about a configuration, from its figures and those of the text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from manyheads.config.schema import Config
from manyheads.doctor.catalogue import config_finding
from manyheads.doctor.report import Finding
from manyheads.training.schedule import Schedule

__all__ = ["Plan", "machine_findings", "plan_findings", "usual_rate"]

# The peak that trains width 256 with 4,096 target tokens an update by Adam; it falls with the root of the width
# (section 5.3 of the paper) and rises with the root of the batch (Malladi et al. 2022). Muon's words bear four
# times as much (docs/decisions.md).
RATE, WIDTH, BATCH, MUON = 2e-3, 256, 4_096, 4.0
LEAST_BATCH, MOST_BATCH = 0.5, 4.0  # where the root of the batch no longer holds
# Of the usual rate. Adam at 2.8 times trains, but badly (docs/decisions.md: 9.3 of perplexity instead of 6.5).
TOO_HIGH, FAR_TOO_HIGH = 4.0, 10.0
REACH = 0.5  # of the deviation that weights are drawn with: so far the rates must at least add up to
LONG_WARM_UP = 0.5  # of all updates
STEADY = 5e-4  # rate up to which a post-norm model trains without a warm-up
MANY_EPOCHS = 200
# Parameters a token of train. 9 in the recipe multi30k-de-en, 75 in that of a much-copied repository, which has to
# stop early.
LARGE, TOO_LARGE = 60, 300
DAY = 24 * 3600.0
LONG, VERY_LONG = 3 * DAY, 30 * DAY
ROOM = 0.9  # share of the free memory that may be needed


@dataclass(frozen=True)
class Plan:
    """Figures of a planned training with its text on this machine.

    Attributes:
        steps: updates; None where only the minutes are fixed and no update was timed.
        epoch_steps: updates of one epoch.
        batch: target tokens an update (of a classification: texts).
        parameters: of the model.
        tokens: of train, on both sides, marks not counted.
        seconds: of one update on this machine, None where none was timed.
        memory: bytes that training needs at the most; free: that this machine has. None where it does not tell.
    """

    steps: int | None
    epoch_steps: int
    batch: float
    parameters: int
    tokens: int
    seconds: float | None = None
    memory: float | None = None
    free: float | None = None

    @property
    def epochs(self) -> float | None:
        """Return the number of passes over the text."""
        return None if self.steps is None else self.steps / self.epoch_steps

    @property
    def total_seconds(self) -> float | None:
        """Return the duration of the whole training without validation."""
        return None if self.steps is None or self.seconds is None else self.steps * self.seconds


def usual_rate(config: Config, batch: float) -> float:
    """Return the usual peak of the learning rate for such a model."""
    width = math.sqrt(WIDTH / config.model.d_model)
    size = min(MOST_BATCH, max(LEAST_BATCH, math.sqrt(batch / BATCH)))
    return RATE * width * size * (MUON if config.training.optimizer == "muon" else 1.0)


def plan_findings(config: Config, plan: Plan) -> Iterator[Finding]:
    """Yield findings about rate, warm-up, epochs and model size."""
    if plan.steps is not None:
        yield from rate_findings(config, plan, plan.steps)
        yield from warm_up_findings(config, plan.steps)
        yield from epoch_findings(config, plan, plan.steps)
    yield from size_findings(config, plan)


def rate_findings(config: Config, plan: Plan, steps: int) -> Iterator[Finding]:
    """Yield a finding if the peak rate is too high, or the sum of all rates too low to move a weight."""
    training = config.training
    schedule = Schedule(training, config.model.d_model)
    peak_step = min(steps, max(1, training.warmup_steps))
    peak = schedule.rate(peak_step, steps)
    usual = usual_rate(config, plan.batch)
    unit = "texts" if config.task == "classification" else "target tokens"
    told = (
        f"the learning rate reaches {peak:.2g}; with width {config.model.d_model}, {plan.batch:,.0f} {unit} an "
        f"update and {training.optimizer} about {usual:.1g} is usual"
    )
    if peak > TOO_HIGH * usual:
        yield config_finding("rate-too-high", told, "error" if peak > FAR_TOO_HIGH * usual else "warning")
    if config.model.init_from is not None:
        return
    # Adam moves no weight by more than its rate in an update (Kingma and Ba 2015, section 2.1)
    sampled = range(1, steps + 1, max(1, steps // 1_000))
    reach = sum(schedule.rate(step, steps) for step in sampled) * steps / len(sampled)
    drawn = config.model.d_model**-0.5
    if reach < REACH * drawn:
        evidence = (
            f"{told}; the rates of all {steps:,} updates add up to {reach:.2g}, and weights are drawn with a "
            f"deviation of {drawn:.2g}"
        )
        yield config_finding("rate-too-low", evidence)


def warm_up_findings(config: Config, steps: int) -> Iterator[Finding]:
    """Yield a finding if the warm-up never ends, takes most of the training, or is missing."""
    training = config.training
    warm_up = training.warmup_steps
    evidence = f"{warm_up:,} updates of warm-up, {steps:,} in all"
    if warm_up >= steps:
        yield config_finding("warm-up-too-long", evidence)
    elif warm_up > LONG_WARM_UP * steps:
        yield config_finding("warm-up-too-long", evidence, "warning")
    rate = training.learning_rate
    if config.model.norm == "post" and warm_up == 0 and rate > STEADY and config.model.init_from is None:
        yield config_finding("post-norm-without-warm-up", f"post-norm, no warm-up, a learning rate of {rate:g}")


def epoch_findings(config: Config, plan: Plan, steps: int) -> Iterator[Finding]:
    """Yield findings about too few or very many epochs, and validation at the end only."""
    training, epochs = config.training, steps / plan.epoch_steps
    told = f"{steps:,} updates are {epochs:,.1f} epochs of {plan.epoch_steps:,} updates"
    if steps < plan.epoch_steps:
        yield config_finding("less-than-an-epoch", told)
    if epochs > MANY_EPOCHS and training.patience is None:
        yield config_finding("very-many-epochs", f"{told}, and training.patience is not set")
    if training.save_every >= steps and steps > plan.epoch_steps:
        yield config_finding(
            "best-never-chosen", f"training.save_every = {training.save_every:,} of {steps:,} updates"
        )


def size_findings(config: Config, plan: Plan) -> Iterator[Finding]:
    """Yield a finding if the model is too large for its text."""
    if config.model.init_from is not None:
        return
    each = plan.parameters / max(1, plan.tokens)
    if each > LARGE:
        evidence = f"{plan.parameters:,} parameters, {plan.tokens:,} tokens to learn from: {each:,.0f} for each"
        yield config_finding("model-too-large", evidence, None if each > TOO_LARGE else "note")


def machine_findings(plan: Plan) -> Iterator[Finding]:
    """Yield findings about memory and time on this machine."""
    gib = 2**30
    if plan.memory is not None and plan.free is not None and plan.memory > ROOM * plan.free:
        evidence = f"about {plan.memory / gib:.1f} GiB are needed, {plan.free / gib:.1f} GiB are free"
        yield config_finding("memory", evidence)
    total = plan.total_seconds
    if total is not None and total > LONG:
        evidence = f"an update takes {plan.seconds:.2f} s here, all of them {total / DAY:.1f} days"
        yield config_finding("takes-days", evidence, None if total > VERY_LONG else "note")
