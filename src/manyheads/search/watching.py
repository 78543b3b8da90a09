"""What a beam search tells somebody who watches it: every continuation that it weighed, and what became of it.

Shapes: A sentences still open, W open prefixes each, K = beam_size, N = 2 K candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeamObserver", "BeamStep"]

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BeamStep:
    """One step of a beam search.

    Attributes:
        length: tokens of the open prefixes before the step.
        sentences: (A,) which ones these are of those given.
        parent, token, value, total: (A, N) the continuations, best first: of which prefix, with what, its
            log-probability, that of the whole; total is -inf where there is none.
        finished: (A, N) those that end here and count as outputs.
        kept: (A, K) places among the N of those that stay open, best first.
        closed: (A,) sentences at their limit: instead of all that, each prefix ends or is cut.
        last_token, last_value: (A, W) the likeliest continuation of each prefix, which decides that.
        going: (A,) sentences that go on after the step.
        scores: (A, K) the best scores of outputs so far, best first, -inf where there are fewer.
    """

    length: int
    sentences: Whole
    parent: Whole
    token: Whole
    value: Real
    total: Real
    finished: Marks
    kept: Whole
    closed: Marks
    last_token: Whole
    last_value: Real
    going: Marks
    scores: Real


class BeamObserver(Protocol):
    """Whoever wants to know."""

    def step(self, step: BeamStep) -> None:
        """A step has been made; the arrays are not used again."""
        ...
