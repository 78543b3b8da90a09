"""Score a classifier on a split or on files."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyheads.errors import DataError
from manyheads.evaluation import ClassScores
from manyheads.runs.kinds.labels import label_numbers
from manyheads.tasks.classification import Classifier
from manyheads.training.log import Listener

__all__ = ["ClassEvaluation", "evaluate_labels", "with_text"]

WIDEST = 12  # classes whose confusion is shown to people


@dataclass(frozen=True)
class ClassEvaluation:
    """What a classifier scores on some texts.

    Attributes:
        loss: nats a text, without label smoothing.
        scores: accuracy and the like, 0 to 1.
        outputs: the labels given, text by text; "" for a text without anything in it, which is not scored.
        truncated: texts longer than the model takes.
        seconds: time of the computing.
    """

    loss: float
    scores: ClassScores
    outputs: list[str]
    truncated: int
    seconds: float

    @property
    def examples(self) -> int:
        """How many texts were scored."""
        return sum(one.support for one in self.scores.classes)

    def to_json(self) -> dict[str, Any]:
        """The shape that `evaluate --json` prints."""
        return {
            "task": "classification",
            "loss": self.loss,
            **self.scores.to_json(),
            "examples": self.examples,
            "truncated": self.truncated,
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """For people."""
        scores, speed = self.scores, len(self.outputs) / max(self.seconds, 1e-9)
        cut = f"; {self.truncated:,} texts cut at data.max_length" if self.truncated else ""
        return [
            f"accuracy {scores.accuracy:.2%}   macro F1 {scores.macro_f1:.2%}   loss {self.loss:.3f}   "
            f"calibration error {scores.calibration_error:.2%}",
            *self.table(),
            f"{self.examples:,} texts, {speed:,.0f} a second{cut}",
        ]

    def table(self) -> list[str]:
        """Each class with its scores, and which labels its texts were given."""
        classes = self.scores.classes
        wide = len(classes) <= WIDEST
        names = [one.label for one in classes]
        rows = [
            ["label", "precision", "recall", "F1", "texts", *([f"-> {name}" for name in names] if wide else [])]
        ]
        for one, counts in zip(classes, self.scores.confusion, strict=True):
            figures = [f"{value:.2%}" for value in (one.precision, one.recall, one.f1)]
            given = [f"{count:,}" for count in counts] if wide else []
            rows.append([one.label, *figures, f"{one.support:,}", *given])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def evaluate_labels(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    listener: Listener,
    where: str = "the text to score",
) -> ClassEvaluation:
    """Classify texts that are in memory, and score what comes out; those without text are left out.

    Args:
        classifier: what is scored.
        texts: one or two texts each, with a tab between two.
        labels: the right ones.
        listener: who is told.
        where: what the texts are called in messages.

    Raises:
        DataError: no text is left, or there are labels that training has not seen.
    """
    places = with_text(texts, listener)
    right = label_numbers((labels[place] for place in places), classifier.labels.names, where)
    if classifier.warning:
        listener.message(f"warning: {classifier.warning}")
    listener.message(f"classifying {len(places):,} texts")
    start = time.perf_counter()
    found = classifier.classify(texts)
    seconds = time.perf_counter() - start
    probabilities = np.array([list(found[place].probabilities.values()) for place in places])
    said = probabilities[np.arange(len(right)), right]
    return ClassEvaluation(
        loss=math.fsum(-math.log(max(value, 1e-300)) for value in said) / len(said),
        scores=ClassScores.of(probabilities, right, classifier.labels.names),
        outputs=[one.label for one in found],
        truncated=sum(one.truncated for one in found),
        seconds=seconds,
    )


def with_text(texts: Sequence[str], listener: Listener) -> list[int]:
    """The places of the texts that have anything in them; how many have not is told.

    Raises:
        DataError: none has.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    if not places:
        raise DataError("0 texts: there is nothing to score. Give at least one.")
    if len(places) < len(texts):
        listener.message(f"{len(texts) - len(places):,} of {len(texts):,} lines without text: left out")
    return places
