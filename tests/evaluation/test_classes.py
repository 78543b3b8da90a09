"""Scores of a classifier agree with their definitions, counted text by text."""

from __future__ import annotations

import numpy as np
import pytest

from manyheads.errors import DataError
from manyheads.evaluation import paired_bootstrap_of_labels
from manyheads.evaluation.classes import ClassScores, accuracy, confusion_matrix, macro_f1

LABELS = ("a", "b", "c", "d")


def random_predictions(seed: int, count: int = 97) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of four classes and labels; the last class is neither a label nor predicted."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([1.0, 1.0, 0.5, 0.01], count)
    probabilities[:, 3] = 0
    probabilities /= probabilities.sum(1, keepdims=True)
    return probabilities, rng.integers(3, size=count)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_score_agrees_with_counting(seed: int) -> None:
    probabilities, targets = random_predictions(seed)
    predicted = [int(np.argmax(row)) for row in probabilities]
    found = ClassScores.of(probabilities, targets, LABELS)
    assert found.accuracy == pytest.approx(np.mean([a == b for a, b in zip(predicted, targets, strict=True)]))
    f1 = []
    for number, label_class in enumerate(found.classes):
        hits = sum(a == b == number for a, b in zip(predicted, targets, strict=True))
        given, true = predicted.count(number), targets.tolist().count(number)
        precision, recall = (hits / given if given else 0), (hits / true if true else 0)
        assert (label_class.label, label_class.support) == (LABELS[number], true)
        assert label_class.precision == pytest.approx(precision)
        assert label_class.recall == pytest.approx(recall)
        expected = 2 * precision * recall / (precision + recall) if precision + recall else 0
        assert label_class.f1 == pytest.approx(expected)
        if given or true:
            f1.append(expected)
        for other in range(4):
            pairs = zip(predicted, targets, strict=True)
            assert found.confusion[number][other] == sum(a == other and b == number for a, b in pairs)
    assert len(f1) == 3, "a class that never occurs does not count"
    assert found.macro_f1 == pytest.approx(np.mean(f1))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_calibration_error_agrees_with_counting_in_bins(seed: int) -> None:
    probabilities, targets = random_predictions(seed)
    total, binned = 0.0, 0
    for number in range(15):
        lower, upper = number / 15, (number + 1) / 15
        rows = [row_index for row_index, row in enumerate(probabilities) if lower < row.max() <= upper]
        binned += len(rows)
        if rows:
            share = np.mean([probabilities[row_index].argmax() == targets[row_index] for row_index in rows])
            confidence = np.mean([probabilities[row_index].max() for row_index in rows])
            total += len(rows) / len(targets) * abs(share - confidence)
    assert binned == len(targets)
    assert ClassScores.of(probabilities, targets, LABELS).calibration_error == pytest.approx(total)


def test_the_calibration_error_is_0_if_always_right_and_sure_and_1_if_always_wrong() -> None:
    sure = np.eye(2)[[0, 1, 1]]
    for targets, expected in ((np.array([0, 1, 1]), 0), (np.array([1, 0, 0]), 1)):
        assert ClassScores.of(sure, targets, ("a", "b")).calibration_error == expected


def test_a_classifier_without_examples_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="0 examples"):
        ClassScores.of(np.zeros((0, 2)), np.zeros(0, np.int64), ("a", "b"))


@pytest.mark.parametrize(("metric", "formula"), [("accuracy", accuracy), ("macro_f1", macro_f1)])
def test_a_bootstrap_of_labels_agrees_with_scoring_every_sample(metric, formula) -> None:
    rng = np.random.default_rng(4)
    targets = rng.integers(4, size=31)
    system, baseline = (np.where(rng.random(31) < share, targets, rng.integers(5, size=31)) for share in (0.6, 0.4))
    found = paired_bootstrap_of_labels(system, baseline, targets, 5, metric=metric, samples=80, seed=7)

    def scored(labels: np.ndarray, rows: np.ndarray) -> float:
        return 100 * formula(confusion_matrix(targets[rows], labels[rows], 5))

    gains = sorted(
        scored(system, rows) - scored(baseline, rows) for rows in np.random.default_rng(7).choice(31, size=(80, 31))
    )
    everything = np.arange(31)
    assert (found.score, found.baseline) == pytest.approx(
        (scored(system, everything), scored(baseline, everything))
    )
    assert found.interval == pytest.approx((gains[2], gains[-3]))
    assert found.wins == sum(gain > 1e-9 for gain in gains) / 80
    assert found.signature == f"metric:{metric}|bs:80|seed:7"


def test_classifiers_with_equal_predictions_do_not_differ() -> None:
    labels = np.array([0, 1, 1, 0])
    found = paired_bootstrap_of_labels(labels, labels, labels, 2)
    assert (found.score, found.difference, found.p_value) == (100, 0, 1)


def test_labels_that_do_not_pair_up_are_refused() -> None:
    with pytest.raises(DataError, match="3 and 2 labels are given for 3 texts"):
        paired_bootstrap_of_labels(np.zeros(3, int), np.zeros(2, int), np.zeros(3, int), 2)
