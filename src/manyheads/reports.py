"""The reports of a running training, and the listeners that receive them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from manyheads.errors import TrainingError

Advance = Callable[[int], object]  # called with the number of items that a phase has done since the last call
_Item = TypeVar("_Item")
_REPORTED = 256  # items of an iterable between two calls of an `Advance`


def no_advance(count: int) -> None:
    """Ignore the progress of a phase: the default of `Advance`."""


@dataclass(frozen=True)
class StepReport:
    """The state of training at a log point; means are taken over the updates since the last log point.

    Attributes:
        step: number of updates done; total_steps: number of updates planned.
        epoch: passes over the corpus so far, with fraction.
        loss: nats per target token (of a classification: per text), label smoothing included; nll: without it.
        learning_rate: learning rate of the last update.
        gradient_norm: mean norm before clipping.
        source_tokens_per_second, target_tokens_per_second: end marks included, padding excluded.
        padding: share of padding among the positions of source and target, 0 to 1.
        seconds: training time so far; seconds_left: estimate of the remaining training time.
        skipped: number of updates so far that were not applied because loss or gradient was not finite.
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
    """The result of a validation.

    Attributes:
        loss: nats per target token (classification: per text) of the validation set, without label smoothing.
        scores: scores by name, higher being better; None where a score was not measured. For translation "bleu" and
            "chrf" of decoded sentences by sacreBLEU; for classification "accuracy" and "macro_f1", 0 to 1.
        best: whether this is the best validation so far by `training.metric`.
        sample: (source, reference, output) of one sentence, or None.
        samples: such triples of a few sentences, the same sentences at every validation.
        attention_entropy: mean entropy of the attention weights of each head over a few validation texts, in nats,
            by kind of attention, then layer, then head; None where it was not measured.
        decoded: number of sentences that were decoded greedily for BLEU and chrF.
    """

    step: int
    loss: float
    scores: Mapping[str, float | None]
    best: bool
    sample: tuple[str, str, str] | None
    samples: tuple[tuple[str, str, str], ...] = ()
    attention_entropy: Mapping[str, Sequence[Sequence[float]]] | None = None
    decoded: int = 0

    @property
    def perplexity(self) -> float:
        """The exponential of the loss per token."""
        return math.exp(min(self.loss, 700))

    def value(self, metric: str) -> float | None:
        """Return the value of a metric, higher being better (the loss negated); None where it was not measured."""
        return -self.loss if metric == "loss" else self.scores.get(metric)

    def checked_value(self, metric: str) -> float:
        """Return the value of a metric as `value` does.

        Raises:
            TrainingError: the loss is not finite, or the metric was not measured.
        """
        if not math.isfinite(self.loss):
            raise TrainingError(
                f"the validation loss at step {self.step} is {self.loss}. "
                "Try a lower training.learning_rate or a longer warm-up."
            )
        value = self.value(metric)
        if value is None:
            raise TrainingError(
                f'training.metric = "{metric}" needs decoded sentences. Set training.valid_sentences.'
            )
        return value

    def plain(self) -> dict[str, object]:
        """Return all values by name, for JSON; each score has its own name."""
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
    """Receives the reports of a training: a progress line, a file of metrics, TensorBoard."""

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Return a context that shows the progress of a phase which may take longer than two seconds.

        The context yields a function to call with the number of items done since its last call, from any thread.

        Args:
            name: what is being done, such as "reading the text".
            total: number of items, if it is known.
            unit: name of the items, such as "pairs".
        """
        ...

    def interrupted(self, text: str) -> None:
        """Receive the answer to a signal, inside its handler: no lock may be taken."""
        ...

    def message(self, text: str) -> None:
        """Receive a line of text for people, such as a warning."""
        ...

    def step(self, report: StepReport) -> None:
        """Receive the report of a log point."""
        ...

    def validation(self, report: ValidationReport) -> None:
        """Receive the report of a validation."""
        ...


class SilentListener:
    """A listener that ignores all reports."""

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Ignore the progress."""
        return nullcontext(no_advance)

    def interrupted(self, text: str) -> None:
        """Ignore the answer."""

    def message(self, text: str) -> None:
        """Ignore the report."""

    def step(self, report: StepReport) -> None:
        """Ignore the report."""

    def validation(self, report: ValidationReport) -> None:
        """Ignore the report."""


NO_LISTENER = SilentListener()


def track(items: Iterable[_Item], listener: Listener, name: str, *, unit: str = "") -> Iterator[_Item]:
    """Yield the items, and show their number as the progress of a phase; arguments as in `Listener.phase`."""
    with listener.phase(name, None, unit) as advance:
        done = 0
        for done, item in enumerate(items, start=1):
            yield item
            if done % _REPORTED == 0:
                advance(_REPORTED)
        advance(done % _REPORTED)
