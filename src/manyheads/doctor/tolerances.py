"""Tolerances of the comparisons of numbers, all of them for float32.

Arithmetic of another shape is rounded differently, about 1e-6 of the spread of the scores; the effects that the
checks look for are beyond 1e-3 even in a model at its start with weights of deviation 0.02.
"""

from __future__ import annotations

from torch import Tensor

__all__ = [
    "NO_GRADIENT",
    "OTHER_SHAPE",
    "SAME_ATTENTION",
    "SAME_BLEU",
    "SAME_FACTOR",
    "SAME_LOSS",
    "SAME_NATS",
    "SAME_SHAPE",
    "TIE",
    "relative_change",
]

# Shares of the spread of the scores of a model (`relative_change`).
SAME_SHAPE = 1e-5  # between two calls with ids of one shape
OTHER_SHAPE = 1e-4  # between two calls with ids of different shapes
NO_GRADIENT = 1e-9  # share of the largest gradient up to which a gradient is taken for zero
SAME_ATTENTION = 1e-4  # absolute difference of the results of two attentions
SAME_FACTOR = 1e-3  # relative difference of two scales of attention
SAME_LOSS = 1e-4  # relative difference of two mean losses: sums in another order
SAME_NATS = 1e-3  # absolute difference of two log-probabilities in nats: sums in another order
TIE = 1e-4  # nats up to which two outputs are equally likely, so that either may be generated
SAME_BLEU = 0.05  # BLEU points


def relative_change(before: Tensor, after: Tensor) -> float:
    """Return the largest change as a share of the spread of the scores; infinite where a score is NaN."""
    change = float((before - after).abs().max())
    spread = float(before.max() - before.min())
    return change / max(spread, 1e-30) if change == change and spread == spread else float("inf")
