"""A fake clock that only updates, validations and checkpoints advance, and trainers that take its seconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.training.parts import TrainerHarness, validation_report

from manyheads.reports import ValidationReport
from manyheads.training import time_limit, trainer
from manyheads.training.batches import Losses, MicroBatch
from manyheads.training.snapshot import Snapshot


def no_losses(micro_batches: Sequence[MicroBatch], tokens: float) -> list[Losses]:
    """Return a loss of 0 for each micro-batch."""
    return [Losses(batch, torch.tensor(0.0), torch.tensor(0.0)) for batch in micro_batches]


class Clock:
    """Replace `time.perf_counter` by a clock that only updates, validations and checkpoints advance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        for part in (trainer, time_limit):
            monkeypatch.setattr(part, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def harness(
        self,
        update: Callable[[int], float] | float,
        *,
        validation: float = 0.0,
        saving: float = 0.0,
        **settings: Any,
    ) -> TrainerHarness:
        """Return a harness whose update n, counted from 1, takes update(n) seconds."""

        def validate(step: int) -> ValidationReport:
            self.now += validation
            return validation_report(step, 1 / max(1, step))

        return self.slow(TrainerHarness(validate=validate, **settings), update, saving)

    def idle_harness(self, update: Callable[[int], float] | float, **settings: Any) -> TrainerHarness:
        """Return a harness whose updates take these seconds and compute nothing, for tests of time alone."""
        harness = self.harness(lambda number: 0.0, **settings)
        harness.trainer.updater.gradients = no_losses  # type: ignore[method-assign]
        harness.trainer.updater.clip_gradients = lambda: 1.0  # type: ignore[method-assign]
        harness.trainer.updater.step = lambda rate: None  # type: ignore[method-assign]
        return self.slow(harness, update)

    def slow(
        self, harness: TrainerHarness, update: Callable[[int], float] | float, saving: float = 0.0
    ) -> TrainerHarness:
        """Let the updates and checkpoints of a harness take these seconds."""
        numbers = itertools.count(1)
        clip, save = harness.trainer.updater.clip_gradients, harness.storage.save

        def slow_clip() -> float:
            self.now += update(next(numbers)) if callable(update) else update
            return clip()

        def slow_save(snapshot: Snapshot) -> None:
            self.now += saving
            save(snapshot)

        harness.trainer.updater.clip_gradients = slow_clip  # type: ignore[method-assign]
        harness.storage.save = slow_save  # type: ignore[method-assign]
        return harness
