"""The outputs of a search and their scores."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.search.interface import Hypothesis

__all__ = ["best_outputs", "divisors", "make_hypothesis"]


@functools.lru_cache(maxsize=8)
def divisors(longest: int, length_penalty: float) -> NDArray[np.float64]:
    """Return length ** length_penalty for the lengths 0 to `longest`: score = log-probability / divisor."""
    with np.errstate(over="ignore"):
        powers: NDArray[np.float64] = np.maximum(np.arange(longest + 1.0), 1) ** length_penalty
    return powers


def make_hypothesis(
    tokens: Sequence[int],
    token_scores: Sequence[float],
    *,
    ended: bool,
    length_penalty: float,
) -> Hypothesis:
    """Build a hypothesis from its tokens and their log-probabilities.

    Args:
        tokens: T ids, the end symbol last when `ended`.
        token_scores: T log-probabilities of the tokens.
        ended: whether the last token is the end symbol.
        length_penalty: exponent of the length in the score.
    """
    scores = tuple(token_scores)
    total = sum(scores)
    return Hypothesis(
        tokens=tuple(tokens[:-1] if ended else tokens),
        log_probability=total,
        score=total / max(len(scores), 1) ** length_penalty,
        token_scores=scores,
        ended=ended,
    )


def best_outputs(outputs: Iterable[Hypothesis], count: int) -> list[Hypothesis]:
    """Return the outputs with the highest scores, best first; equal scores in the given order."""
    return sorted(outputs, key=lambda output: -output.score)[:count]
