"""Sentences that nobody waits for any more leave a search at its next step; the others do not notice.

Shapes: B sentences, R rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.search.interface import Abandoned, Stepper, nobody

__all__ = ["AbandoningStepper", "among"]


class AbandoningStepper:
    """A stepper whose rows have to end at once when their sentence is abandoned.

    Nothing but the end symbol can follow then, so that every kind of search finishes the sentence at that step and
    drops it. Rows of other sentences keep their log-probabilities to the bit.
    """

    def __init__(self, stepper: Stepper, sentences: int, abandoned: Abandoned, eos: int) -> None:
        """Around a stepper that holds one row a sentence.

        Args:
            stepper: gives the log-probabilities; it stands under all other rules.
            sentences: B.
            abandoned: asked at each step.
            eos: the end symbol.
        """
        self.stepper = stepper
        self.sentences = list(range(sentences))  # of each row
        self.abandoned = abandoned
        self.eos = eos

    def step(self, tokens: Tensor) -> Tensor:
        """As `Stepper.step`."""
        log_probs = self.stepper.step(tokens)
        rows = self.gone()
        if not rows:
            return log_probs
        ending = log_probs.clone()
        ending[rows] = -torch.inf
        ending[rows, self.eos] = 0.0
        return ending

    def gone(self) -> list[int]:
        """The rows of sentences that are abandoned."""
        gone = self.abandoned()
        return [row for row, sentence in enumerate(self.sentences) if sentence in gone] if gone else []

    def select(self, rows: Tensor) -> None:
        """As `Stepper.select`."""
        self.stepper.select(rows)
        self.sentences = [self.sentences[row] for row in rows.tolist()]


def among(abandoned: Abandoned, places: Sequence[int]) -> Abandoned:
    """What is abandoned among the sentences at some places, numbered anew."""
    if abandoned is nobody:
        return nobody
    number = {place: new for new, place in enumerate(places)}
    return lambda: [number[place] for place in abandoned() if place in number]
