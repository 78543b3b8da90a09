"""Cancellation of single sentences of a batch: a cancelled sentence ends at the next step of its search.

Shapes: B sentences, R rows, V vocabulary.
"""

from __future__ import annotations

import math

from torch import Tensor

from manyheads.search.interface import Cancelled, Stepper


class CancellableStepper:
    """A wrapper around a stepper that ends the rows of cancelled sentences.

    Only the end symbol can follow in these rows, so that every kind of search finishes the sentence at that step
    and drops it. The log-probabilities of all other rows stay bit-identical.
    """

    def __init__(self, stepper: Stepper, sentences: int, cancelled: Cancelled, eos: int) -> None:
        """Wrap a stepper that holds one row a sentence, with all other rules already applied.

        `cancelled` returns the indices of the cancelled sentences of B; it is called at each step.
        """
        self.stepper = stepper
        self.sentences = list(range(sentences))  # the sentence of each row
        self.cancelled = cancelled
        self.eos = eos

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row; a row of a cancelled sentence can only end: (R,) -> (R, V)."""
        log_probs = self.stepper.step(tokens)
        cancelled = self.cancelled()
        rows = [row for row, sentence in enumerate(self.sentences) if sentence in cancelled] if cancelled else []
        if not rows:
            return log_probs
        ending = log_probs.clone()
        ending[rows] = -math.inf
        ending[rows, self.eos] = 0.0
        return ending

    def select(self, rows: Tensor) -> None:
        """Keep some rows, and their sentences: (R',) row indices."""
        self.stepper.select(rows)
        self.sentences = [self.sentences[row] for row in rows.tolist()]
