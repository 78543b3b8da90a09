"""The state of a training: its progress, the sums since the last log point, and the detection of divergence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from manyheads.reports import StepReport
from manyheads.training.batches import Losses
from manyheads.training.distributed import World

_MIN_LOG_POINTS = 5  # log points before divergence can be reported
_MEAN_LOG_POINTS = 20  # log points over which the running mean is taken, about
_DIVERGENCE_NATS = 1.0  # nats above the running mean at which training diverges: the perplexity has grown e times
# seconds after which the weight of an update in the estimate of the time left has fallen to 1 / e
_RECENT_SECONDS = 60.0


@dataclass
class Progress:
    """The counters of a training.

    Attributes:
        step: number of updates done.
        epoch, position: the current epoch, and the number of updates done in it.
        total_steps: number of updates planned; with `max_minutes` it follows the time that is left.
        pending: whether the checkpoint of this step is not validated yet.
        seconds: training time, without validation.
        recent_seconds: seconds an update, averaged over about the last minute, as other programs come and go.
        skipped, skipped_in_row: number of updates not applied because the gradient was not finite.
        best, best_step: the best value of `training.metric` so far, and the step of that validation.
        waited: number of validations since the best one.
        stopped_early: whether patience (`training.patience`) ran out.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    total_steps: int = 0
    pending: bool = False
    seconds: float = 0.0
    recent_seconds: float = 0.0
    skipped: int = 0
    skipped_in_row: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    stopped_early: bool = False

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Progress:
        """Return the counters of a state; those of earlier versions that no longer exist are left out."""
        return cls(**{name: value for name, value in state.items() if name in cls.__dataclass_fields__})

    @property
    def finished(self) -> bool:
        """Whether no update is left to do."""
        return self.stopped_early or self.step >= self.total_steps

    @property
    def complete(self) -> bool:
        """Whether no update and no validation is left to do."""
        return self.finished and not self.pending

    def due(self, every: int) -> bool:
        """Return whether an action is due that takes place every `every` updates, and after the last one."""
        return self.step >= self.total_steps or self.step % every == 0

    def out_of_patience(self, patience: int | None) -> bool:
        """Return whether `training.patience` validations in a row brought no improvement."""
        return patience is not None and self.waited >= patience

    def advance(self, seconds: float) -> None:
        """Count an update that took `seconds`."""
        weight = max(1 / (self.step + 1), -math.expm1(-seconds / _RECENT_SECONDS))
        self.recent_seconds += weight * (seconds - self.recent_seconds)
        self.seconds += seconds
        self.step += 1
        self.position += 1

    def compare(self, value: float) -> bool:
        """Record the value of a validation, the higher the better; return whether it is the best so far."""
        if self.best is not None and value <= self.best:
            self.waited += 1
            return False
        self.best, self.best_step, self.waited = value, self.step, 0
        return True


@dataclass
class Window:
    """Sums since the last log point; a micro-batch whose loss is not finite is left out.

    Losses stay on the device until they are read, because reading one makes the CPU wait for the accelerator.

    Attributes:
        sums: sums of loss, nll, source tokens, target tokens and positions.
        norm: sum of the gradient norms of the applied updates; updates: number of these updates.
        seconds: training time.
        unread: loss and nll of each micro-batch (2,) that are not in the sums yet, and its counts.
    """

    sums: list[float] = field(default_factory=lambda: [0.0] * 5)
    norm: float = 0.0
    updates: int = 0
    seconds: float = 0.0
    unread: list[tuple[Tensor, list[int]]] = field(default_factory=list)

    def add(self, micro_batches: Sequence[Losses]) -> None:
        """Add the losses and the token counts of the micro-batches of an update."""
        for batch, loss, nll in micro_batches:
            counts = [batch.source_tokens, batch.target_tokens, batch.num_positions]
            self.unread.append((torch.stack([loss.detach(), nll]), counts))

    def read(self) -> list[float]:
        """Return the five sums, after reading the losses from the device."""
        if self.unread:
            losses = torch.stack([pair for pair, _ in self.unread]).tolist()
            for pair, (_, counts) in zip(losses, self.unread, strict=True):
                if math.isfinite(pair[0]):
                    self.sums = [old + new for old, new in zip(self.sums, [*pair, *counts], strict=True)]
            self.unread.clear()
        return self.sums

    def state(self) -> dict[str, Any]:
        """Return the state that resuming needs, for JSON: arguments of a new window."""
        return {"sums": self.read(), "norm": self.norm, "updates": self.updates, "seconds": self.seconds}

    def report(self, progress: Progress, rate: float, epoch_updates: int, world: World) -> StepReport:
        """Return the means of the window over all processes, NaN where no loss was finite.

        `rate` is the learning rate of the last update.
        """
        loss, nll, source, target, positions = world.total(self.read())
        tokens, updates, seconds = target or math.nan, self.updates or math.nan, max(1e-9, self.seconds)
        return StepReport(
            step=progress.step,
            total_steps=progress.total_steps,
            epoch=progress.epoch + progress.position / epoch_updates,
            loss=loss / tokens,
            nll=nll / tokens,
            learning_rate=rate,
            gradient_norm=self.norm / updates,
            source_tokens_per_second=source / seconds,
            target_tokens_per_second=target / seconds,
            padding=1 - (source + target) / max(1, positions),
            seconds=progress.seconds,
            seconds_left=(progress.total_steps - progress.step) * progress.recent_seconds,
            skipped=progress.skipped,
        )


class DivergenceDetector:
    """Compares the loss at each log point, in nats per token, with its running mean.

    Attributes:
        mean: the running mean of the losses, in nats per token.
        points: number of log points in the mean, at most `_MEAN_LOG_POINTS`.
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
        was_above, self.above = self.above, self.points >= _MIN_LOG_POINTS and loss > self.mean + _DIVERGENCE_NATS
        if not self.above:
            self.points = min(self.points + 1, _MEAN_LOG_POINTS)
            self.mean += (loss - self.mean) / self.points
        return self.above and not was_above

    def state(self) -> dict[str, Any]:
        """Return the state that resuming needs."""
        return {"mean": self.mean, "points": self.points, "astray": self.above}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the state that `state` returned."""
        self.mean, self.points, self.above = state["mean"], state["points"], state["astray"]
