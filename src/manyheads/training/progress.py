"""Where training stands, what was seen since the last log point, and what a checkpoint holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manyheads.data.batch import Batch
from manyheads.training.log import StepReport

__all__ = ["Progress", "Snapshot", "Window"]


@dataclass
class Progress:
    """Where training stands.

    Attributes:
        step: updates done.
        epoch, position: the epoch under way and the updates done in it.
        total_steps: updates planned; fixed once for `max_minutes`.
        seconds: training time, validation not counted.
        skipped, skipped_in_row: updates not applied because the gradient was not finite.
        best, best_step: the best value of `training.metric` so far, and when.
        waited: validations since then.
        stopped_early: patience ran out.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    total_steps: int = 0
    fixed: bool = True
    seconds: float = 0.0
    skipped: int = 0
    skipped_in_row: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    stopped_early: bool = False


@dataclass(frozen=True)
class Snapshot:
    """All that a checkpoint holds: tensors by name, and a state for JSON."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


@dataclass
class Window:
    """Sums since the last log point, of what was finite: they go into checkpoints, and JSON has no NaN."""

    updates: int = 0
    loss: float = 0.0
    nll: float = 0.0
    norm: float = 0.0
    seconds: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    places: int = 0

    def add(self, batch: Batch, loss: Tensor, nll: Tensor) -> None:
        """One part of an update."""
        value = float(loss.detach())
        if not math.isfinite(value):
            return
        self.loss += value
        self.nll += float(nll)
        self.source_tokens += batch.source_tokens
        self.target_tokens += batch.target_tokens
        self.places += batch.source.numel() + batch.target_in.numel()

    def report(self, progress: Progress, rate: float, epoch_updates: int) -> StepReport:
        """The means of the window, NaN where nothing was finite."""
        tokens, updates, seconds = self.target_tokens or math.nan, self.updates or math.nan, max(1e-9, self.seconds)
        return StepReport(
            step=progress.step,
            total_steps=progress.total_steps,
            epoch=progress.epoch + progress.position / epoch_updates,
            loss=self.loss / tokens,
            nll=self.nll / tokens,
            learning_rate=rate,
            gradient_norm=self.norm / updates,
            source_tokens_per_second=self.source_tokens / seconds,
            target_tokens_per_second=self.target_tokens / seconds,
            padding=1 - (self.source_tokens + self.target_tokens) / max(1, self.places),
            seconds=progress.seconds,
            seconds_left=(progress.total_steps - progress.step) * progress.seconds / max(1, progress.step),
            skipped=progress.skipped,
        )
