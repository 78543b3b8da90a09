"""Where training stands, what was seen since the last log point, and what a checkpoint holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manyheads.training.distributed import World
from manyheads.training.log import StepReport
from manyheads.training.part import Part

__all__ = ["Progress", "Snapshot", "Window"]

RECENT = 60.0  # seconds in which the weight of an update in the estimate of the time left falls to 1 / e


@dataclass
class Progress:
    """Where training stands.

    Attributes:
        step: updates done.
        epoch, position: the epoch under way and the updates done in it.
        total_steps: updates planned; fixed once for `max_minutes`.
        seconds: training time, validation not counted.
        recent_seconds: seconds an update, the mean over about the last minute: other programs come and go.
        skipped, skipped_in_row: updates not applied because the gradient was not finite.
        rollbacks: how often training went back to a checkpoint because it diverged; each halves the rate.
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
    recent_seconds: float = 0.0
    skipped: int = 0
    skipped_in_row: int = 0
    rollbacks: int = 0
    best: float | None = None
    best_step: int = 0
    waited: int = 0
    stopped_early: bool = False

    def advance(self, seconds: float) -> None:
        """Count an update that took so long."""
        weight = max(1 / (self.step + 1), -math.expm1(-seconds / RECENT))
        self.recent_seconds += weight * (seconds - self.recent_seconds)
        self.seconds += seconds
        self.step += 1
        self.position += 1

    def note(self, value: float) -> bool:
        """Take in the value of a validation, the higher the better; returns whether it is the best so far."""
        if self.best is not None and value <= self.best:
            self.waited += 1
            return False
        self.best, self.best_step, self.waited = value, self.step, 0
        return True


@dataclass(frozen=True)
class Snapshot:
    """All that a checkpoint holds: tensors by name, and a state for JSON.

    Attributes:
        model: the weights that training goes on with.
        published: the weights that validation saw and that translate: averaged ones, when there are such.
        optimizer: moments, averages and generators.
        state: all else.
    """

    model: dict[str, Tensor]
    published: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Window:
    """Sums since the last log point, of what was finite.

    Losses stay on the device until somebody asks: reading one would make the processor wait for the accelerator.
    """

    def __init__(self) -> None:
        self.sums = [0.0] * 5  # loss, nll, source tokens, target tokens, places
        self.unread: list[tuple[Tensor, list[int]]] = []  # loss and nll of a part (2,), and its counts
        self.norm = 0.0
        self.updates = 0
        self.seconds = 0.0

    def add(self, batch: Part, loss: Tensor, nll: Tensor) -> None:
        """One part of an update; its counts are left out too when its loss is not finite."""
        losses = torch.stack([loss.detach(), nll])
        self.unread.append((losses, [batch.source_tokens, batch.target_tokens, batch.places]))

    def read(self) -> list[float]:
        """The sums, with all that waits on the device."""
        if self.unread:
            losses = torch.stack([pair for pair, _ in self.unread]).tolist()
            for pair, (_, counts) in zip(losses, self.unread, strict=True):
                if math.isfinite(pair[0]):
                    self.sums = [old + new for old, new in zip(self.sums, [*pair, *counts], strict=True)]
            self.unread.clear()
        return self.sums

    def state(self) -> dict[str, Any]:
        """What resuming needs, for JSON."""
        return {
            "sums": self.read(),
            "norm": self.norm,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.sums = list(state["sums"])
        self.unread.clear()
        self.norm, self.updates, self.seconds = state["norm"], state["updates"], state["seconds"]

    def report(self, progress: Progress, rate: float, epoch_updates: int, world: World) -> StepReport:
        """The means of the window over all processes, NaN where nothing was finite."""
        loss, nll, source, target, places = world.total(self.read())
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
            padding=1 - (source + target) / max(1, places),
            seconds=progress.seconds,
            seconds_left=(progress.total_steps - progress.step) * progress.recent_seconds,
            skipped=progress.skipped,
        )
