"""A unigram model of the labels costs their entropy."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bitext.pairs import Pair
from manyheads.checks.subjects import TrainedClassifier


def classifier(train: list[Pair], valid: list[Pair]) -> TrainedClassifier:
    nothing: Any = None
    rest: dict[str, Any] = {"encode": lambda texts: [[5]] * len(texts), "probabilities": nothing, "longest": 7}
    return TrainedClassifier(nothing, nothing, nothing, train, valid, None, labels=("good", "bad"), **rest)


def test_the_loss_of_a_unigram_model_is_the_entropy_of_the_labels() -> None:
    labels = ["good"] * 5 + ["bad"] * 5
    train = [Pair("a film", label, line) for line, label in enumerate(labels)]
    assert classifier(train, []).unigram_loss() == pytest.approx(math.log(2))
    assert classifier([], train).unigram_loss() is None


def test_validation_texts_with_unknown_labels_are_left_out() -> None:
    valid = [Pair("a film", label, 1) for label in ("good", "fair", "bad")]
    trained = classifier([], valid)
    assert [pair.target for pair in trained.labelled] == ["good", "bad"]
    assert len(trained.rows) == 2
