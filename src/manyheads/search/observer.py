"""The interface for observing a beam search: every candidate that a step ranks, and whether it is kept.

Shapes: A sentences still open, W open prefixes a sentence, K = beam_size, N = 2 K candidates a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeamObserver", "BeamStep", "BoolArray", "FloatArray", "IntArray"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BeamStep:
    """One step of a beam search.

    Attributes:
        length: number of tokens of the open prefixes before the step.
        sentences: (A,) indices of the open sentences in the batch.
        parent: (A, N) index of the prefix that each candidate extends; candidates are sorted best first.
        token: (A, N) token id that each candidate appends.
        value: (A, N) log-probability of that token.
        total: (A, N) log-probability of the extended prefix; -inf where there are fewer than N candidates.
        finished: (A, N) whether a candidate ends here and counts as an output.
        kept: (A, K) indices (of the N) of the candidates that stay open, best first.
        closed: (A,) whether a sentence is at its length limit: candidates are ignored there, and each of its
            prefixes ends or is cut.
        last_token: (A, W) likeliest next token of each prefix; in a closed sentence, eos here ends the prefix.
        last_value: (A, W) log-probability of that token.
        going: (A,) whether a sentence stays open after the step.
        scores: (A, K) best scores of the outputs so far, best first; -inf where there are fewer than K.
    """

    length: int
    sentences: IntArray
    parent: IntArray
    token: IntArray
    value: FloatArray
    total: FloatArray
    finished: BoolArray
    kept: IntArray
    closed: BoolArray
    last_token: IntArray
    last_value: FloatArray
    going: BoolArray
    scores: FloatArray


class BeamObserver(Protocol):
    """An observer of a beam search."""

    def step(self, step: BeamStep) -> None:
        """Receive a step after it was made; the search does not use the arrays again."""
        ...
