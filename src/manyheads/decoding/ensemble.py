"""Ensembles: several models whose distributions are averaged at every step.

Shapes: N models, R rows, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.search.interface import Stepper


def mean_probability(log_probs: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean of the models' probabilities: N times (..., V) -> (..., V)."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


class EnsembleStepper:
    """One stepper made of the steppers of several models, with the same rows and the same target vocabulary."""

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        self.steppers = steppers

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row; return the log of the mean probability: (R,) -> (R, V)."""
        return mean_probability([stepper.step(tokens) for stepper in self.steppers])

    def select(self, rows: Tensor) -> None:
        """Keep some rows in every stepper: (R',) row indices."""
        for stepper in self.steppers:
            stepper.select(rows)
