"""Several models that decide together.

Shapes: N models, R rows, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from manyheads.search.interface import Stepper

__all__ = ["Combine", "EnsembleStepper", "mean_logarithm", "mean_probability"]

Combine = Callable[[Sequence[Tensor]], Tensor]


def mean_probability(log_probs: Sequence[Tensor]) -> Tensor:
    """Mean of the models' probabilities: N times (..., V) -> log-probabilities (..., V)."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


def mean_logarithm(log_probs: Sequence[Tensor]) -> Tensor:
    """Geometric mean of the models' probabilities, made to add up to 1: N times (..., V) -> (..., V).

    A token needs the consent of all models, where for `mean_probability` one that is certain of it is enough.
    """
    return torch.stack(list(log_probs)).mean(0).log_softmax(-1)


class EnsembleStepper:
    """Steppers of several models over the same rows and the same target vocabulary, as one."""

    def __init__(self, steppers: Sequence[Stepper], combine: Combine = mean_probability) -> None:
        self.steppers = steppers
        self.combine = combine

    def step(self, tokens: Tensor) -> Tensor:
        """As `Stepper.step`."""
        return self.combine([stepper.step(tokens) for stepper in self.steppers])

    def select(self, rows: Tensor) -> None:
        """As `Stepper.select`."""
        for stepper in self.steppers:
            stepper.select(rows)
