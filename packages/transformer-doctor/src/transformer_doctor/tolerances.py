"""Tolerances of the comparisons of numbers.

Tensors of another shape are rounded differently, in float32 by about 1e-6 of the spread of the scores; the effects
that the checks look for are beyond 1e-3 even in a new model with weights of deviation 0.02. How much the
rounding of a model changes its scores is measured (`preparation.measured_tolerances`): it widens the tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

# Shares of the spread of the scores of a model (`relative_change`).
SAME_SHAPE = 1e-5  # between two calls with ids of one shape
_OTHER_SHAPE = 1e-4  # between two calls with ids of different shapes
_IN_DOUBLE = 1e-6  # in float64, between two calls with ids of any shape
NO_GRADIENT = 1e-9  # share of the largest gradient up to which a gradient is taken for zero
SAME_ATTENTION = 1e-4  # absolute difference of the results of two attentions
SAME_FACTOR = 1e-3  # relative difference of two scales of attention
SAME_LOSS = 1e-4  # relative difference of two mean losses: sums in another order
SAME_NATS = 1e-3  # absolute difference of two log-probabilities in nats: sums in another order
TIE = 1e-4  # nats up to which two outputs are equally likely, so that either may be generated
SAME_BLEU = 0.05  # BLEU points


# Largest rounding of a model that is assumed: beyond it no effect could be seen in the scores.
_MOST_ROUNDING = 0.02
# Times the measured rounding: the sums of another shape are rounded differently, layer by layer.
_FOR_OTHER_SHAPE = 4
_FOR_DOUBLE = 10  # the same of a model in float64, parts of which may compute in float32 all the same


@dataclass(frozen=True)
class Tolerances:
    """Shares of the spread of the scores up to which two calls of a model agree.

    Attributes:
        rounding: change of the scores when every weight is rounded differently.
        exact: whether the model computes in float32 or better.
        double: whether its weights are in float64.
    """

    rounding: float = 0.0
    exact: bool = True
    double: bool = False

    @property
    def same_shape(self) -> float:
        """Return the tolerance between two calls with ids of one shape."""
        if self.double:
            return self.other_shape
        return max(SAME_SHAPE, min(self.rounding, _MOST_ROUNDING))

    @property
    def other_shape(self) -> float:
        """Return the tolerance between two calls with ids of different shapes."""
        if self.double:
            return max(_IN_DOUBLE, _FOR_DOUBLE * self.rounding)
        return max(_OTHER_SHAPE, _FOR_OTHER_SHAPE * min(self.rounding, _MOST_ROUNDING))


def percentage(share: float) -> str:
    """Return a share as a percentage that never reads as zero: "12.0%", "0.0031%"."""
    return f"{share:.1%}" if share >= 0.001 or share == 0 or not math.isfinite(share) else f"{100 * share:.2g}%"


def relative_change(before: Tensor, after: Tensor) -> float:
    """Return the largest change as a share of the spread of the scores; infinite where a score is NaN.

    Scores that are the same at every position, such as those of suppressed tokens, do not widen the spread.
    """
    change = float((before - after).abs().masked_fill(before == after, 0).max())
    columns = before.flatten(0, -2) if before.dim() > 1 else before[:, None]
    varying = columns[:, (columns != columns[:1]).any(0)]
    varying = varying if varying.numel() else columns
    finite = varying[varying.isfinite()]
    spread = float(finite.max() - finite.min()) if finite.numel() else 0.0
    return change / max(spread, 1e-30) if change == change and not before.isnan().any() else math.inf


def change_of_most(before: Tensor, after: Tensor, tolerance: float) -> float:
    """Return the change of scores (B, T, V), 0 unless half of the positions of every row change by a tolerance.

    A choice among keys that are equally good changes the scores of some texts, what follows from a length of all.
    """
    change, changes = relative_change(before, after), (before - after).abs().amax(-1)
    beyond = changes * change > tolerance * changes.max()
    return change if bool((beyond.float().mean(1) >= 0.5).all()) else 0.0
