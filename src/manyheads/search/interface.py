"""All that search knows of a model: a `Stepper`; all that it returns: a `Hypothesis`.

Shapes: R rows (one a hypothesis in progress; the rows of a sentence stand together), V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

__all__ = ["Hypothesis", "Stepper"]


class Stepper(Protocol):
    """A model in the middle of decoding: it holds R rows, each with its prefix.

    Two methods suffice to grow and reorder a beam, to drop rows that have ended, for ensembles, for
    constraints, and for tests without a network.
    """

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row and score what may follow: (R,) -> log-probabilities (R, V), float32."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R',) indices into the R rows."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search.

    Attributes:
        tokens: its ids, without the begin and end symbols.
        log_probability: sum of the log-probabilities of its tokens in nats, the end symbol's included.
        score: what hypotheses are ranked by: log_probability / length ** length_penalty, where length
            counts the tokens and the end symbol.
        token_scores: the log-probability of each token in nats, the end symbol's last (when it has ended).
        ended: whether it came to the end symbol; false when it was cut at the length limit.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_scores: tuple[float, ...]
    ended: bool
