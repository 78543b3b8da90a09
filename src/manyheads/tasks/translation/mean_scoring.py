"""Scores of a translator of several languages: of each direction, and their mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bitext.pairs import Pair
from manyheads.config.schema import Config
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.reports import ValidationReport
from manyheads.tasks.translation.scoring import Evaluation, Validation
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.interruption import UNWATCHED, Watch

Directions = Mapping[str, tuple[Config, list[Pair]]]  # by name, such as "de-en"


class MeanValidation:
    """Validates each direction by itself; loss, BLEU and chrF are the means over the directions.

    `training.valid_sentences` are divided among the directions.
    """

    def __init__(
        self,
        directions: Directions,
        tokenizers: TokenizerPair,
        model: EncoderDecoder,
        world: World = ALONE,
        watch: Watch = UNWATCHED,
    ) -> None:
        self.parts = {}
        for name, (config, pairs) in directions.items():
            sentences = -(-config.training.valid_sentences // len(directions))
            training = config.training.model_copy(update={"valid_sentences": sentences})
            own = config.model_copy(update={"training": training})
            self.parts[name] = Validation(own, pairs, tokenizers, model, world, watch)

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step; see `Validation`."""
        reports = {name: part(step) for name, part in self.parts.items()}
        scores = {
            metric: _mean([report.scores[metric] for report in reports.values()]) for metric in ("bleu", "chrf")
        }
        of_directions = {f"bleu {name}": report.scores["bleu"] for name, report in reports.items()}
        shown = list(reports.values())
        samples = [sample for number in range(3) for report in shown for sample in report.samples[number:][:1]]
        return replace(
            shown[step % len(shown)],
            loss=fmean(report.loss for report in shown),
            scores=scores | (of_directions if scores["bleu"] is not None else {}),
            samples=tuple(samples[: max(3, len(shown))]),
            attention_entropy=shown[0].attention_entropy,
            decoded=sum(report.decoded for report in shown),
        )

    @property
    def size(self) -> tuple[int, ...]:
        """The sizes of the validations of all directions; see `Validation.size`."""
        return tuple(number for part in self.parts.values() for number in part.size)

    @size.setter
    def size(self, size: Sequence[int]) -> None:
        for number, part in enumerate(self.parts.values()):
            part.size = (size[2 * number], size[2 * number + 1])

    def seconds(self, every: int) -> float:
        """Return the estimated seconds of a validation, from one pair in `every`."""
        return math.fsum(part.seconds(every) for part in self.parts.values())

    def shorten(self, seconds: float) -> float:
        """Give each direction an equal share of `seconds`; return the estimated seconds of a validation."""
        return math.fsum(part.shorten(seconds / len(self.parts)) for part in self.parts.values())


@dataclass(frozen=True)
class MeanEvaluation:
    """Scores of several directions, and their means.

    Attributes:
        task: task of the run.
        parts: scores of each direction by its name, such as "de-en".
    """

    task: str
    parts: Mapping[str, Evaluation]

    @property
    def loss(self) -> float:
        """Mean loss of the directions in nats a target token."""
        return fmean(part.loss for part in self.parts.values())

    @property
    def means(self) -> dict[str, float]:
        """Mean BLEU, chrF and TER of the directions."""
        scores = [part.scores for part in self.parts.values()]
        return {
            "bleu": fmean(score.bleu for score in scores),
            "chrf": fmean(score.chrf for score in scores),
            "ter": fmean(score.ter for score in scores),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        directions = {name: part.to_json() for name, part in self.parts.items()}
        return {"task": self.task, "loss": self.loss, **self.means, "directions": directions}

    def lines(self) -> list[str]:
        """Return a line for each direction, and a line of means."""
        first, means = next(iter(self.parts.values())), self.means
        rows = []
        for name, part in self.parts.items():
            other = sum(bool(output.other_language) for output in part.compared)
            rows.append(
                f"{name}: BLEU {part.scores.bleu:.2f}, chrF {part.scores.chrf:.2f}, perplexity "
                f"{part.perplexity:.3f}; {other:,} of {len(part.compared):,} outputs in another language"
            )
        return [
            f"{first.text}: {len(self.parts)} directions, {first.config.search.method}",
            *rows,
            f"mean: BLEU {means['bleu']:.2f}, chrF {means['chrf']:.2f}   {first.scores.signature['bleu']}",
            "one direction in full: --to LANGUAGE --from LANGUAGE",
        ]


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of scores; None if one was not measured."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
