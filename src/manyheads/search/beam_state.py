"""Where a beam search stands: its open hypotheses, what may follow them, and what has been found.

Shapes: B sentences, of which A are still open; W open hypotheses a sentence, T tokens so far; N continuations of a
sentence. All is in arrays on the CPU, whose operations start in a quarter of the time of torch's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.search.candidates import divisors, make_hypothesis
from manyheads.search.interface import Hypothesis

__all__ = ["Beam", "Continuations", "Finished", "Real", "Whole"]

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


@dataclass(frozen=True)
class Beam:
    """The open hypotheses of the sentences still in the batch, best first.

    Attributes:
        sentences, limits: (A,) place in the batch given, longest output.
        log_probability: (A, W); -inf where there are fewer than W.
        tokens, token_scores: (A, W, T), without the begin symbol.
    """

    sentences: Whole
    limits: Whole
    log_probability: Real
    tokens: Whole
    token_scores: Real

    @classmethod
    def start(cls, limits: Whole) -> Beam:
        """One empty prefix a sentence."""
        count = len(limits)
        return cls(
            sentences=np.arange(count),
            limits=limits,
            log_probability=np.zeros((count, 1)),
            tokens=np.empty((count, 1, 0), dtype=np.int64),
            token_scores=np.empty((count, 1, 0)),
        )

    @property
    def length(self) -> int:
        """Tokens so far, T."""
        return self.tokens.shape[2]

    def of(self, which: Whole) -> Beam:
        """Only these of the A sentences."""
        return Beam(
            self.sentences[which],
            self.limits[which],
            self.log_probability[which],
            self.tokens[which],
            self.token_scores[which],
        )

    def grow(self, candidates: Continuations) -> Beam:
        """Make each candidate (A, W') a hypothesis: T -> T + 1."""
        sentence = np.arange(len(self.sentences))[:, None]
        tokens = [self.tokens[sentence, candidates.parent], candidates.token[:, :, None]]
        scores = [self.token_scores[sentence, candidates.parent], candidates.value[:, :, None]]
        return Beam(
            self.sentences,
            self.limits,
            candidates.total,
            np.concatenate(tokens, axis=2),
            np.concatenate(scores, axis=2),
        )


@dataclass(frozen=True)
class Continuations:
    """Continuations of a sentence's prefixes, best first, each (A, N).

    Attributes:
        parent: the prefix continued, 0 to W - 1.
        token: with what.
        value: the log-probability of that token; total: of the whole, -inf where there are fewer than N.
    """

    parent: Whole
    token: Whole
    value: Real
    total: Real

    def at(self, places: Whole) -> Continuations:
        """The candidates at these places (A, N')."""
        row = np.arange(len(places))[:, None]
        return Continuations(
            self.parent[row, places], self.token[row, places], self.value[row, places], self.total[row, places]
        )

    def of(self, which: Whole) -> Continuations:
        """All candidates of these of the A sentences."""
        return Continuations(self.parent[which], self.token[which], self.value[which], self.total[which])


class Finished:
    """The outputs found so far.

    `scores` (B, K) holds the K best scores of every sentence, best first, -inf where there are fewer.
    """

    def __init__(self, limits: Whole, beam_size: int, n_best: int, length_penalty: float) -> None:
        count = len(limits)
        self.scores = np.full((count, beam_size), -np.inf)
        self.divisors = divisors(int(limits.max(initial=0)) + 1, length_penalty)
        self.n_best = n_best
        self.length_penalty = length_penalty
        self._outputs: list[list[Hypothesis]] = [[] for _ in range(count)]

    def add(self, beam: Beam, which: NDArray[np.bool_], *, ended: bool) -> None:
        """Add the hypotheses of the beam that `which` (A, W) marks, but for those of probability 0."""
        scores = beam.log_probability / self.divisors[beam.length]
        scores = np.where(which, scores, -np.inf)
        known = self.scores[beam.sentences]
        useful = scores > known[:, -1:]  # the K best of a sentence, and no others, can be asked for
        every = -np.sort(-np.concatenate([known, scores], axis=1), axis=1)
        self.scores[beam.sentences] = every[:, : known.shape[1]]
        for row, place in zip(*useful.nonzero(), strict=True):
            self._outputs[int(beam.sentences[row])].append(
                make_hypothesis(
                    beam.tokens[row, place].tolist(),
                    beam.token_scores[row, place].tolist(),
                    ended=ended,
                    length_penalty=self.length_penalty,
                )
            )

    def settled(self, beam: Beam) -> NDArray[np.bool_]:
        """Whether a sentence can stop, as `beam_search` says: (A,)."""
        scores, best = self.scores[beam.sentences], beam.log_probability[:, 0]
        usual = scores[:, -1] >= best / self.divisors[beam.length]
        exact = scores[:, self.n_best - 1] >= best / self.divisors[beam.limits + 1]
        stopped: NDArray[np.bool_] = usual | exact
        return stopped

    def best(self, sentence: int) -> list[Hypothesis]:
        """The n_best of a sentence, best first, the earlier first among equals."""
        return sorted(self._outputs[sentence], key=lambda output: -output.score)[: self.n_best]
