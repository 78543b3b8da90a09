"""What training tells while it runs: plain values, for whoever shows or stores them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Listener", "SilentListener", "StepReport", "ValidationReport"]


@dataclass(frozen=True)
class StepReport:
    """The state of training at a log point; means are over the updates since the one before.

    Attributes:
        step: updates done; total_steps: updates planned.
        epoch: passes over the corpus done, with fraction.
        loss: nats per target token (of a classification: per text), label smoothing included; nll: without it.
        learning_rate: of the last update.
        gradient_norm: mean norm before clipping.
        source_tokens_per_second, target_tokens_per_second: end marks counted, padding not.
        padding: share of positions that were padding, both sides, 0 to 1.
        seconds: training time so far; seconds_left: estimate of what remains.
        skipped: updates not applied so far because loss or gradient was not finite.
    """

    step: int
    total_steps: int
    epoch: float
    loss: float
    nll: float
    learning_rate: float
    gradient_norm: float
    source_tokens_per_second: float
    target_tokens_per_second: float
    padding: float
    seconds: float
    seconds_left: float
    skipped: int


@dataclass(frozen=True)
class ValidationReport:
    """The validation set seen through the weights of one step.

    Attributes:
        loss: nats per target token (of a classification: per text) over all of them, without label smoothing.
        scores: by name, each the higher the better; None where one was not measured. Of translations "bleu" and
            "chrf", sacreBLEU's scores of real decoding; of classes "accuracy" and "macro_f1", 0 to 1.
        best: whether this is the best so far by the configured metric.
        sample: (source, reference, output) of one sentence, or None.
        samples: the same of a few sentences, always the same ones.
        attention_entropy: how widely each head looks, by kind of attention, then layer, then head: the mean entropy
            of its weights in nats over a few validation texts; None where it was not measured.
    """

    step: int
    loss: float
    scores: Mapping[str, float | None]
    best: bool
    sample: tuple[str, str, str] | None
    samples: tuple[tuple[str, str, str], ...] = ()
    attention_entropy: Mapping[str, Sequence[Sequence[float]]] | None = None

    @property
    def perplexity(self) -> float:
        """The exponential of the loss."""
        return math.exp(min(self.loss, 700))

    def value(self, metric: str) -> float | None:
        """What the best is chosen by, the higher the better; None when it was not measured."""
        return -self.loss if metric == "loss" else self.scores.get(metric)

    def plain(self) -> dict[str, object]:
        """All of it by name, each score under its own."""
        return {
            "step": self.step,
            "loss": self.loss,
            "perplexity": self.perplexity,
            **self.scores,
            "best": self.best,
            "sample": self.sample,
            "samples": self.samples,
            "attention_entropy": self.attention_entropy,
        }


class Listener(Protocol):
    """Whoever wants to know: a progress line, a file of metrics, TensorBoard."""

    def message(self, text: str) -> None:
        """One line for people: a phase that begins, a warning."""
        ...

    def step(self, report: StepReport) -> None:
        """A log point."""
        ...

    def validation(self, report: ValidationReport) -> None:
        """A validation."""
        ...


class SilentListener:
    """Nobody wants to know."""

    def message(self, text: str) -> None:
        """Say nothing."""

    def step(self, report: StepReport) -> None:
        """Say nothing."""

    def validation(self, report: ValidationReport) -> None:
        """Say nothing."""
