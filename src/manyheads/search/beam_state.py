"""The state of a beam search: open hypotheses, their candidate continuations, and the finished outputs.

An observer of a search receives every step: each candidate, and whether it is kept.

Shapes: B sentences, of which A are still open; W open hypotheses a sentence, T tokens so far; K = beam_size;
N candidates a sentence, 2 K in a step. The state is held in NumPy arrays on the CPU: a small NumPy operation starts
in a quarter of the time of a torch operation.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from manyheads.search.interface import Hypothesis, best_outputs, length_divisors, make_hypothesis
from manyheads.search.options import SearchOptions

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Beam:
    """The open hypotheses of the sentences still in the batch, best first.

    Attributes:
        sentences: (A,) index of each sentence in the batch.
        limits: (A,) maximum output length of each sentence in tokens.
        log_probability: (A, W) log-probability of each hypothesis; -inf where there are fewer than W.
        tokens: (A, W, T) token ids, without the begin symbol.
        token_scores: (A, W, T) log-probabilities of the tokens.
    """

    sentences: IntArray
    limits: IntArray
    log_probability: FloatArray
    tokens: IntArray
    token_scores: FloatArray

    @classmethod
    def start(cls, limits: IntArray) -> Beam:
        """Return the beam with one empty prefix a sentence; limits: (B,)."""
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
        """Number of tokens so far, T."""
        return self.tokens.shape[2]

    def select_sentences(self, indices: IntArray) -> Beam:
        """Return the beam of some of the A sentences: indices (A',)."""
        return Beam(
            self.sentences[indices],
            self.limits[indices],
            self.log_probability[indices],
            self.tokens[indices],
            self.token_scores[indices],
        )

    def extend(self, candidates: Continuations) -> Beam:
        """Return the beam whose hypotheses are the candidates (A, W'): T -> T + 1."""
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
    """Candidate continuations of the open prefixes of each sentence, best first, each (A, N).

    Attributes:
        parent: index of the extended prefix, 0 to W - 1.
        token: id of the appended token.
        value: log-probability of that token.
        total: log-probability of the extended prefix; -inf where there are fewer than N candidates.
    """

    parent: IntArray
    token: IntArray
    value: FloatArray
    total: FloatArray

    def gather(self, indices: IntArray) -> Continuations:
        """Return the candidates at the indices (A, N') of each sentence."""
        row = np.arange(len(indices))[:, None]
        return Continuations(
            self.parent[row, indices], self.token[row, indices], self.value[row, indices], self.total[row, indices]
        )

    def select_sentences(self, indices: IntArray) -> Continuations:
        """Return all candidates of some of the A sentences: indices (A',)."""
        return Continuations(self.parent[indices], self.token[indices], self.value[indices], self.total[indices])


@dataclass(frozen=True, eq=False)
class BeamStep:
    """One step of a beam search.

    Attributes:
        length: number of tokens of the open prefixes before the step.
        sentences: (A,) indices of the open sentences in the batch.
        candidates: the N best continuations of each sentence.
        finished: (A, N) whether a candidate ends here and counts as an output.
        kept: (A, K) indices (of the N) of the candidates that stay open, best first.
        closed: (A,) whether a sentence is at its length limit: candidates are ignored there, and each of its
            prefixes ends or is cut.
        last_token: (A, W) likeliest next token of each prefix; in a closed sentence, eos here ends the prefix.
        last_value: (A, W) log-probability of that token.
        active: (A,) whether a sentence stays open after the step.
        scores: (A, K) best scores of the outputs so far, best first; -inf where there are fewer than K.
    """

    length: int
    sentences: IntArray
    candidates: Continuations
    finished: BoolArray
    kept: IntArray
    closed: BoolArray
    last_token: IntArray
    last_value: FloatArray
    active: BoolArray
    scores: FloatArray


class BeamObserver(Protocol):
    """An observer of a beam search."""

    def step(self, step: BeamStep) -> None:
        """Receive a step after it was made; the search does not use the arrays again."""
        ...


@functools.lru_cache(maxsize=8)
def divisors(longest: int, length_penalty: float) -> FloatArray:
    """Return length ** length_penalty for the lengths 0 to `longest`: score = log-probability / divisor."""
    return length_divisors(np.arange(longest + 1), length_penalty)


class Finished:
    """The finished outputs of all sentences.

    Attributes:
        scores: (B, K) best scores of each sentence, best first; -inf where there are fewer than K.
        divisors: for each output length, the divisor of its log-probability (`divisors`).
    """

    def __init__(self, limits: IntArray, options: SearchOptions) -> None:
        count = len(limits)
        self.scores = np.full((count, options.beam_size), -np.inf)
        self.length_penalty, self.n_best = options.length_penalty, options.n_best
        self.divisors = divisors(int(limits.max(initial=0)) + 1, self.length_penalty)
        self._outputs: list[list[Hypothesis]] = [[] for _ in range(count)]

    def add(self, beam: Beam, selected: BoolArray, *, ended: bool) -> None:
        """Add the `selected` (A, W) hypotheses of the beam, except those of probability 0."""
        scores = beam.log_probability / self.divisors[beam.length]
        scores = np.where(selected, scores, -np.inf)
        best_scores = self.scores[beam.sentences]
        useful = scores > best_scores[:, -1:]  # an output below the K best of its sentence can never be returned
        ranked = -np.sort(-np.concatenate([best_scores, scores], axis=1), axis=1)
        self.scores[beam.sentences] = ranked[:, : best_scores.shape[1]]
        for row, column in zip(*useful.nonzero(), strict=True):
            self._outputs[int(beam.sentences[row])].append(
                make_hypothesis(
                    beam.tokens[row, column].tolist(),
                    beam.token_scores[row, column].tolist(),
                    ended=ended,
                    length_penalty=self.length_penalty,
                )
            )

    def can_stop(self, beam: Beam) -> BoolArray:
        """Return whether each sentence of the beam meets a stop rule of `beam_search`: (A,)."""
        scores, best = self.scores[beam.sentences], beam.log_probability[:, 0]
        usual = scores[:, -1] >= best / self.divisors[beam.length]
        exact = scores[:, self.n_best - 1] >= best / self.divisors[beam.limits + 1]
        stopped: BoolArray = usual | exact
        return stopped

    def best(self, sentence: int) -> list[Hypothesis]:
        """Return the n_best outputs of a sentence, best first; equal scores in the order in which they finished."""
        return best_outputs(self._outputs[sentence], self.n_best)
