"""Scores of classifiers: accuracy, precision, recall, F1, confusion matrix, calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import DataError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BINS = 15  # number of intervals of confidence, as in Guo et al. (2017)


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class.

    Attributes:
        label: name of the class.
        precision: share of the texts predicted as this class that belong to it.
        recall: share of the texts of this class that are predicted as it.
        f1: harmonic mean of precision and recall.
        support: number of texts of this class.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ClassScores:
    """Scores of predictions against the true labels.

    Attributes:
        accuracy: share of correct predictions, 0 to 1.
        macro_f1: mean F1 of the classes that occur in the labels or the predictions.
        calibration_error: expected calibration error (`_calibration_error`), 0 to 1.
        classes: scores of each class; 0 / 0 counts as 0.
        confusion: number of texts of each class (rows) predicted as each class (columns).
    """

    accuracy: float
    macro_f1: float
    calibration_error: float
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, probabilities: FloatArray, targets: IntArray, labels: Sequence[str]) -> ClassScores:
        """Score probabilities (N, C) against the true classes (N,).

        Raises:
            DataError: there are no texts.
        """
        if not len(targets):
            raise DataError("0 examples: there is nothing to score. Give at least one.")
        matrix = confusion_matrix(targets, probabilities.argmax(1), len(labels))
        precision, recall, f1 = _f1_by_class(matrix)
        classes = (
            ClassScore(label, float(precision[c]), float(recall[c]), float(f1[c]), int(matrix[c].sum()))
            for c, label in enumerate(labels)
        )
        return cls(
            accuracy=accuracy(matrix),
            macro_f1=macro_f1(matrix),
            calibration_error=_calibration_error(probabilities, targets),
            classes=tuple(classes),
            confusion=tuple(tuple(row) for row in matrix.tolist()),
        )


def confusion_matrix(targets: IntArray, predicted: IntArray, classes: int) -> IntArray:
    """Count the texts of each class (row) by prediction (column): targets (N,), predicted (N,) -> (C, C)."""
    counts = np.bincount(targets * classes + predicted, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.int64)


def accuracy(confusion: IntArray) -> float:
    """Return the accuracy of a confusion matrix (C, C)."""
    return float(np.trace(confusion) / max(1, confusion.sum()))


def _f1_by_class(confusion: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precision, recall and F1 (C,) of each class of a confusion matrix (C, C); 0 / 0 counts as 0."""
    hits = np.diag(confusion).astype(np.float64)
    predicted, true = confusion.sum(0), confusion.sum(1)
    return hits / np.maximum(1, predicted), hits / np.maximum(1, true), 2 * hits / np.maximum(1, predicted + true)


def macro_f1(confusion: IntArray) -> float:
    """Return the mean F1 of the classes that occur in the labels or the predictions."""
    seen = (confusion.sum(0) + confusion.sum(1)) > 0
    return float(_f1_by_class(confusion)[2][seen].mean()) if seen.any() else 0.0


def _calibration_error(probabilities: FloatArray, targets: IntArray, bins: int = _BINS) -> float:
    """Return the expected calibration error (Guo et al. 2017, equation 3), 0 to 1.

    Predictions are sorted into bins of equal width by the probability of the predicted class; in each, the mean
    probability is compared with the accuracy.

    Args:
        probabilities: (N, C).
        targets: true classes (N,).
        bins: number of bins.
    """
    confidence = probabilities.max(1)
    hits = probabilities.argmax(1) == targets
    bin_of = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)  # (lower, upper]
    gaps = np.bincount(bin_of, weights=confidence - hits, minlength=bins)
    return float(np.abs(gaps).sum() / max(1, len(targets)))
