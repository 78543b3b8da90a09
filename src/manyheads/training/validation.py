"""The validation of a step whose checkpoint is saved: compared with the best, reported, stored."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from manyheads.errors import TrainingError
from manyheads.training.interruption import Interrupted
from manyheads.training.log import ValidationReport
from manyheads.training.snapshot import published_weights, take_state

if TYPE_CHECKING:
    from manyheads.training.trainer import Trainer

__all__ = ["validate_step"]


def validate_step(trainer: Trainer) -> bool:
    """Validate the published weights of the saved step, compare them with the best, and store the result.

    The published weights are the averaged ones with `training.ema`.

    Returns:
        False if a request to stop ended the validation.

    Raises:
        TrainingError: the loss is not finite, or the metric of `training.metric` was not measured.
    """
    with trainer.answering(f"stopping; the checkpoint of step {trainer.progress.step:,} is saved"):
        start = time.perf_counter()
        try:
            with nullcontext() if trainer.ema is None else trainer.ema.instead(trainer.model):
                report = trainer.score()
        except Interrupted:
            return False
        store_validation(trainer, report, start)
    return True


def store_validation(trainer: Trainer, report: ValidationReport, start: float) -> None:
    """Compare a validation that began at `start` with the best, report it, and store the result.

    Raises:
        TrainingError: the loss is not finite, or the metric of `training.metric` was not measured.
    """
    step = trainer.progress.step
    try:
        best = compare_with_best(trainer, report)
    except TrainingError:
        trainer.storage.discard(step)
        raise
    trainer.listener.validation(replace(report, best=best))
    trainer.progress.pending = False
    trainer.limit.validation = time.perf_counter() - start
    trainer.storage.confirm(step, take_state(trainer), published_weights(trainer) if best else None)


def compare_with_best(trainer: Trainer, report: ValidationReport) -> bool:
    """Update best value, patience and plateau schedule; return whether this validation is the best so far.

    Raises:
        TrainingError: the loss is not finite, or the metric of `training.metric` was not measured.
    """
    progress, value = trainer.progress, report.checked_value(trainer.config.metric)
    trainer.schedule.validated(report.loss)
    best = progress.compare(value)
    if not trainer.updater.layerwise.complete(progress.step):  # layers that are unfrozen later may still help
        progress.waited = 0
    progress.stopped_early = progress.out_of_patience(trainer.config.patience)
    return best
