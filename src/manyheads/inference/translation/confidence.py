"""How sure a translator is of a translation: an estimate of its sentence chrF, fitted on validation text.

The estimate is linear in four measures that need no further computation of the model: the mean log-probability and
the mean probability of the tokens of an output, the surprise of its source (`SourceModel`), and how unusual the
ratio of the lengths is. An output with a sign of failure, such as a repetition, counts as low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from manyheads.errors import RunError, UsageError
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage
from manyheads.inference.translation.unlike_training import SourceModel

if TYPE_CHECKING:
    from manyheads.checkpoint import RunDirectory
    from manyheads.inference.translation.translator import Translator

CONFIDENCE = "confidence.json"  # name of the model in a run directory
LEVELS = ("low", "medium", "high")
MIN_PAIRS = 20  # validation pairs that a fit needs
_LOW, _HIGH = 0.2, 0.5  # shares of the validation text below "medium", and below "high"
_GOOD = 0.7  # chrF of a good output; where few are worse, fewer are "low": twice as many as are worse
_RIDGE = 0.05  # penalty of the standardised weights, as a share of the number of pairs
_SIGNS_OF_FAILURE = frozenset(
    ("untrained-direction", "unlike-training", "repetition", "length-ratio", "forced-term", "broken-character")
)


class OutputMeasures(NamedTuple):
    """Measures of an output and its source, from which the confidence is estimated; see `measure`."""

    log_probability: float  # mean of its tokens, in nats
    probability: float  # mean of its tokens
    surprise: float  # mean of the pieces of the source, in nats
    length_ratio: float  # logarithm of target tokens / source tokens, both with their end marks


def measure(
    token_scores: Sequence[float], rows: Sequence[Sequence[int]], sources: SourceModel | None
) -> OutputMeasures:
    """Measure the translation of a line.

    Args:
        token_scores: log-probability of each token of the output, at least one, for all parts of the line.
        rows: token ids of the parts of the source.
        sources: model of the training sources; without it every source has the same surprise.
    """
    pieces, count = sum(len(row) + 1 for row in rows), len(token_scores)
    return OutputMeasures(
        sum(token_scores) / count,
        sum(map(math.exp, token_scores)) / count,
        sum(map(sources.surprise, rows)) / pieces if sources else 0.0,
        math.log(count / pieces),
    )


@dataclass(frozen=True)
class ConfidenceModel:
    """The estimate of sentence chrF, from 0 to 1.

    Attributes:
        bias: constant term.
        weights: weights of the mean log-probability, the mean probability, the surprise, and the distance of the
            length ratio from the usual one.
        usual_ratio: median of `OutputMeasures.length_ratio` of the validation text.
        limits: levels "medium" and "high" are above these: a fifth of the validation text is not above the
            first, half of it not above the second; less where nearly all of it is translated well.
    """

    bias: float
    weights: tuple[float, float, float, float]
    usual_ratio: float
    limits: tuple[float, float]

    def estimate(self, measures: OutputMeasures, warnings: Sequence[str] = (), *, truncated: bool = False) -> float:
        """Return the confidence in an output; with a sign of failure, at most half of the limit of "medium"."""
        value = self.bias + sum(
            weight * term for weight, term in zip(self.weights, _terms(measures, self.usual_ratio), strict=True)
        )
        if truncated or not _SIGNS_OF_FAILURE.isdisjoint(warnings):
            value = min(value, self.limits[0] / 2)
        return min(1.0, max(0.0, value))

    def level(self, confidence: float) -> str:
        """Return the word for a confidence, one of `LEVELS`."""
        return LEVELS[sum(confidence > limit for limit in self.limits)]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that is stored in a run directory."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read the JSON form of `to_json`; raises `ValueError` for other content."""
        try:
            bias, ratio = float(content["bias"]), float(content["usual_ratio"])
            first, second, third, fourth = map(float, content["weights"])
            medium, high = map(float, content["limits"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("no model of confidence") from error
        if not all(map(math.isfinite, (bias, ratio, first, second, third, fourth, medium, high))):
            raise ValueError("no model of confidence")
        return cls(bias, (first, second, third, fourth), ratio, (medium, high))


def fit_confidence(measures: Sequence[OutputMeasures], chrf: Sequence[float]) -> ConfidenceModel:
    """Fit the model on outputs and their sentence chrF, from 0 to 1, by ridge regression."""
    usual = float(np.median([measure.length_ratio for measure in measures]))
    terms = np.array([_terms(measure, usual) for measure in measures])  # (outputs, terms)
    targets, means, deviations = np.array(chrf), terms.mean(0), terms.std(0) + 1e-9
    standard = (terms - means) / deviations
    matrix = standard.T @ standard + _RIDGE * len(targets) * np.eye(terms.shape[1])
    weights = np.linalg.solve(matrix, standard.T @ (targets - targets.mean())) / deviations
    bias = float(targets.mean() - weights @ means)
    first, second, third, fourth = (round(weight, 6) for weight in weights.tolist())
    share = min(1.0, float(np.mean(targets < _GOOD)) * 2 / _LOW)
    low, high = np.quantile(np.clip(bias + terms @ weights, 0, 1), (share * _LOW, share * _HIGH)).round(4).tolist()
    return ConfidenceModel(round(bias, 6), (first, second, third, fourth), round(usual, 6), (low, high))


def _terms(measures: OutputMeasures, usual_ratio: float) -> tuple[float, float, float, float]:
    return (*measures[:3], abs(measures.length_ratio - usual_ratio))


def read_confidence(run: RunDirectory) -> ConfidenceModel | None:
    """Read the model of the confidence of a run; None if it has none."""
    path = run.path / CONFIDENCE
    if not path.is_file():
        return None
    try:
        return ConfidenceModel.from_json(run.document(CONFIDENCE))
    except ValueError as error:
        raise RunError(f"{path} is damaged: it holds no model of confidence. Remove it.") from error


class Confidence(Stage):
    """The confidence in each translation, which is left empty below `SearchOptions.min_confidence`.

    It comes after the stages whose warnings are signs of failure.
    """

    warnings: ClassVar = {"low-confidence": "left empty, because the confidence is below --min-confidence"}
    columns: ClassVar = {
        "confidence": lambda translation: "" if translation.confidence is None else f"{translation.confidence:.4f}"
    }

    def before(self, drafts: list[Draft]) -> list[Draft]:
        """Refuse a limit where there is no model, and for a stream, whose pieces are shown before it is known."""
        if not self.request.options.min_confidence:
            return drafts
        if self.request.method == "stream":
            raise UsageError("min_confidence: the confidence is known at the end of a translation. Use translate.")
        if self.translator.confidence is None:
            raise UsageError(
                "min_confidence: this translator has no model of the confidence. A run gets one from its "
                "`manyheads train` command, given once more; an export has none."
            )
        return drafts

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the confidence; remove the candidates if it is too low."""
        model = self.translator.confidence
        if model is None:
            return translation
        measures = measure(translation.hypotheses[0].token_scores, draft.line.parts, self.translator.sources)
        confidence = model.estimate(measures, translation.warnings, truncated=translation.truncated)
        if confidence < self.request.options.min_confidence:
            empty = replace(translation, hypotheses=[], alignment=None)
            translation = empty.with_warnings({"low-confidence": True})
        return replace(translation, confidence=confidence, confidence_level=model.level(confidence))

    @classmethod
    def after_pivot(cls, first: Translation, translation: Translation) -> Translation:
        """Keep the lower confidence of the two."""
        known = [part for part in (first, translation) if part.confidence is not None]
        least = min(known, key=lambda part: part.confidence or 0.0, default=translation)
        return replace(translation, confidence=least.confidence, confidence_level=least.confidence_level)

    @classmethod
    def page_data(cls, translator: Translator) -> dict[str, Any]:
        """Return the model."""
        return {"confidence": translator.confidence.to_json() if translator.confidence else None}

    @classmethod
    def answer_fields(cls, translator: Translator, translations: Sequence[Translation]) -> dict[str, Any]:
        """Return the level of the mean confidence, in which each translation counts with its tokens."""
        model = translator.confidence
        known = [
            (own.confidence, len(own.hypotheses[0].tokens)) for own in translations if own.confidence is not None
        ]
        if model is None or not known:
            return {"confidenceLevel": None}
        mean = sum(confidence * tokens for confidence, tokens in known) / sum(tokens for _, tokens in known)
        return {"confidenceLevel": model.level(mean)}
