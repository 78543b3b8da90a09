"""Texts in batches through a model in torch."""

from __future__ import annotations

import numpy as np
from tests.inference.test_classifier import make_classifier, some_texts

from manyheads.decoding.text_batches import class_probabilities
from manyheads.inference.texts import encode_texts


def test_a_model_in_training_is_used_without_dropout_and_stays_in_training() -> None:
    classifier = make_classifier()
    rows = encode_texts(classifier.tokenizer.encode, some_texts(5), 1)
    classifier.model.train()
    first, second = (class_probabilities(classifier.model, rows) for _ in range(2))
    assert np.array_equal(first, second)
    assert classifier.model.training
