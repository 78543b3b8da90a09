"""Ensembles: several models whose distributions are averaged at every step.

Shapes: N models, R rows, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from manyheads.search.interface import Stepper

# The log-probabilities (..., V) of N models -> the log-probabilities of the ensemble (..., V).
Combine = Callable[[Sequence[Tensor]], Tensor]


def mean_probability(log_probs: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean of the models' probabilities: N times (..., V) -> (..., V)."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


def mean_logarithm(log_probs: Sequence[Tensor]) -> Tensor:
    """Return the log of the normalised geometric mean of the models' probabilities: N times (..., V) -> (..., V).

    A token is likely only if all models find it likely; for `mean_probability` one certain model is enough.
    """
    return torch.stack(list(log_probs)).mean(0).log_softmax(-1)


class EnsembleStepper:
    """One stepper made of the steppers of several models, with the same rows and the same target vocabulary."""

    def __init__(self, steppers: Sequence[Stepper], combine: Combine = mean_probability) -> None:
        self.steppers = steppers
        self.combine = combine

    def step(self, tokens: Tensor) -> Tensor:
        """See `Stepper.step`."""
        return self.combine([stepper.step(tokens) for stepper in self.steppers])

    def select(self, rows: Tensor) -> None:
        """See `Stepper.select`."""
        for stepper in self.steppers:
            stepper.select(rows)
