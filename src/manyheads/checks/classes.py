"""Predictions of a classifier: accuracy, classes that are never predicted, use of the text, and batches.

Shapes: N texts, C classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from manyheads.checks.catalogue import run_finding
from manyheads.checks.evidence import Share
from manyheads.checks.losses import REPLACEMENT_DISTANCE, batching_findings, source_findings
from manyheads.checks.subjects import TrainedClassifier
from transformer_doctor.report import Finding

_MIN_ACCURACY_GAIN = 0.02  # accuracy above that of the most frequent class
_SINGLE_TEXTS = 12  # texts that are classified one by one


def check_texts(trained: TrainedClassifier) -> Iterator[Finding]:
    """Compare the loss of the labels with their loss when texts are exchanged (invariant N)."""
    labels = _label_ids(trained)
    own = _class_loss(trained.predicted, labels)
    shuffled = _class_loss(
        np.roll(trained.predicted, REPLACEMENT_DISTANCE if len(labels) > REPLACEMENT_DISTANCE else 1, axis=0),
        labels,
    )
    return source_findings(own, shuffled, len(labels))


def check_classes(trained: TrainedClassifier) -> Iterator[Finding]:
    """Compare predicted and true classes of the validation texts."""
    labels, predicted = _label_ids(trained), trained.predicted.argmax(1)
    accuracy, own = float((predicted == labels).mean()), _class_loss(trained.predicted, labels)
    trained.facts["classes"] = (
        f"accuracy {accuracy:.1%} on {len(labels):,} validation texts; loss {own:.3f} nats a text"
    )
    frequencies = [
        dict(zip(trained.labels, np.bincount(ids, minlength=len(trained.labels)).tolist(), strict=True))
        for ids in (labels, predicted)
    ]
    return _class_findings(accuracy, *frequencies)


def check_class_batches(trained: TrainedClassifier) -> Iterator[Finding]:
    """Compare the loss of some texts in a batch with their loss one by one (invariant L)."""
    labels = _label_ids(trained)[:_SINGLE_TEXTS]
    alone = np.concatenate([trained.probabilities([row]) for row in trained.rows[:_SINGLE_TEXTS]])
    return batching_findings(_class_loss(trained.predicted[:_SINGLE_TEXTS], labels), _class_loss(alone, labels))


def _label_ids(trained: TrainedClassifier) -> NDArray[np.int64]:
    """Return the class of each labelled validation text (N,)."""
    return np.array([trained.labels.index(pair.target) for pair in trained.labelled])


def _class_loss(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the mean loss in nats a text: (N, C), (N,)."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(labels)), labels], 1e-300)).mean())


def _class_findings(accuracy: float, labels: Mapping[str, int], predicted: Mapping[str, int]) -> Iterator[Finding]:
    """Yield findings if the classifier is no better than the most frequent class, or never predicts a class.

    Args:
        accuracy: on the validation texts, 0 to 1.
        labels: frequency of each class as the true one, by name.
        predicted: frequency of each class as the prediction, by name.
    """
    (most, number), total = Counter(labels).most_common(1)[0], sum(labels.values())
    frequent = Share(number, total)
    if accuracy < frequent + _MIN_ACCURACY_GAIN:
        evidence = f'accuracy is {accuracy:.1%}; always predicting "{most}" gives {frequent:.1%}'
        yield run_finding("no-better-than-guessing", evidence)
    never_predicted = [name for name, count in labels.items() if count and not predicted[name]]
    if never_predicted:
        named = ", ".join(f'"{name}" ({labels[name]:,} texts)' for name in never_predicted[:5])
        yield run_finding("class-never-said", f"of {total:,} validation texts none is predicted as {named}")
