"""Findings about the curves of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from manyheads.checks.catalogue import run_finding
from manyheads.checks.evidence import Share
from transformer_doctor.report import Finding

# Ratio of the last validation loss to the best one. A rise of some hundredths is random, and harmless: the best
# model is saved.
_RISEN, _RISEN_FAR = 1.05, 1.3
_FALLING, _FALLING_FAST = 0.05, 0.15  # share of the loss that the last quarter of the updates took off
LEAST_VALIDATIONS = 5
UNIGRAM = 0.95  # of the loss of a unigram model
_DIVERGED = 1.5  # ratio of the last tenth of the training losses to the best tenth
_SKIPPED = 0.01
_TENTHS = 10


@dataclass(frozen=True)
class Curves:
    """Figures from the log of a training.

    Attributes:
        losses: (step, nats a prediction without smoothing) of training.
        validations: (step, loss).
        total_steps: updates planned.
        skipped: updates that were not applied.
        bleu: (step, BLEU of greedy search) of the validations of a translator.
    """

    losses: tuple[tuple[int, float], ...]
    validations: tuple[tuple[int, float], ...]
    total_steps: int
    skipped: int
    bleu: tuple[tuple[int, float], ...] = ()

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Self:
        """Return the curves of the records of metrics.jsonl."""
        lines = list(records)
        steps = [line for line in lines if line.get("kind") == "step"]
        validations = [line for line in lines if line.get("kind") == "validation"]
        return cls(
            losses=_finite_points(steps, "nll"),
            validations=_finite_points(validations, "loss"),
            total_steps=_count(steps[-1], "total_steps") if steps else 0,
            skipped=max((_count(line, "skipped") for line in steps), default=0),
            bleu=_finite_points(validations, "bleu"),
        )

    @property
    def best(self) -> tuple[int, float]:
        """Return step and loss of the best validation."""
        return min(self.validations, key=lambda validation: validation[1])

    @property
    def last_step(self) -> int:
        """Return the number of updates done."""
        return max((step for step, _ in (*self.losses, *self.validations)), default=0)


def _count(record: Mapping[str, Any], name: str) -> int:
    """Return a number of updates; 0 where a record has none."""
    value = record.get(name)
    return value if isinstance(value, int) else 0


def _finite_points(records: Iterable[Mapping[str, Any]], name: str) -> tuple[tuple[int, float], ...]:
    """Return (step, value) of the records in which a value is a finite number."""
    points = ((record["step"], record.get(name)) for record in records)
    return tuple(
        (step, value) for step, value in points if isinstance(value, (int, float)) and math.isfinite(value)
    )


def curve_findings(curves: Curves, unigram_loss: float | None) -> Iterator[Finding]:
    """Yield findings about the curves of a training.

    Args:
        curves: curves of the training.
        unigram_loss: loss of a unigram model, which knows the token frequencies alone, in nats a prediction; None
            where it is unknown.
    """
    yield from _training_findings(curves)
    if not curves.validations:
        return
    best_step, best = curves.best
    last_step, last = curves.validations[-1]
    if unigram_loss is not None and best >= UNIGRAM * unigram_loss:
        evidence = f"the best validation loss is {best:.2f} nats; the frequencies of tokens alone give "
        yield run_finding("never-left-chance", f"{evidence}{unigram_loss:.2f}")
    if len(curves.validations) < LEAST_VALIDATIONS:
        return
    if last > _RISEN * best:
        evidence = (
            f"the validation loss was {best:.3f} at step {best_step:,} and is {last:.3f} at step {last_step:,}"
        )
        recent = [nll for step, nll in curves.losses if step <= last_step][-_TENTHS:]
        if recent:
            evidence += f"; that of training is {sum(recent) / len(recent):.3f}"
        yield run_finding("over-fitting", evidence, None if last > _RISEN_FAR * best else "note")
    before = [loss for step, loss in curves.validations if step <= 0.75 * last_step]
    if before and last <= best and (fallen := 1 - last / before[-1]) > _FALLING:
        evidence = f"the last quarter of {last_step:,} updates took the validation loss from {before[-1]:.3f} to "
        yield run_finding("under-fitting", f"{evidence}{last:.3f}", None if fallen > _FALLING_FAST else "note")


def _training_findings(curves: Curves) -> Iterator[Finding]:
    """Yield findings about divergence, skipped updates, and a training that has not ended."""
    losses = [nll for _, nll in curves.losses]
    size = len(losses) // _TENTHS
    if size:
        tenths = [sum(losses[i : i + size]) / size for i in range(0, len(losses) - size + 1, size)]
        if tenths[-1] > _DIVERGED * min(tenths) and tenths[-1] > min(tenths) + 0.5:
            evidence = f"the training loss is {tenths[-1]:.2f} at the end; it had been {min(tenths):.2f}"
            yield run_finding("diverged", evidence)
    if Share(curves.skipped, curves.last_step) > _SKIPPED:
        yield run_finding("updates-skipped", f"{curves.skipped:,} of {curves.last_step:,} updates")
    if curves.last_step < curves.total_steps:
        yield run_finding("unfinished", f"{curves.last_step:,} of {curves.total_steps:,} updates are done")
