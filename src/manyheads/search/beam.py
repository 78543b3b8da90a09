"""Beam search (section 6.1), one batch of sentences at a time.

Shapes: B sentences, of which A are still open; W open hypotheses a sentence (1 at first, then K = beam_size);
R = A x W rows; T tokens so far; C candidates a row. All state is in arrays on the CPU, whose operations
start in a quarter of the time of torch's: what a step moves from the device is C candidates a row, and back go R
tokens and R row numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.search.candidates import best_tokens, check_limits, make_hypothesis
from manyheads.search.interface import Hypothesis, Stepper
from manyheads.search.watching import BeamObserver, BeamStep

__all__ = ["beam_search"]

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    *,
    beam_size: int,
    n_best: int = 1,
    length_penalty: float,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    forbidden: Sequence[int] = (),
    observer: BeamObserver | None = None,
) -> list[list[Hypothesis]]:
    """Keep the beam_size most likely prefixes of every sentence; return its finished outputs, best first.

    At each step the 2 x beam_size best continuations of a sentence's prefixes are ranked by log-probability
    (ties: earlier prefix first, then the likelier token, then the lower id). Those among the first beam_size
    that end in eos are finished; the first beam_size of the others stay open.

    A sentence stops

    * when beam_size outputs are finished, and none of them has a lower score than the best open prefix would
      have at its present length; this stop is usual but not exact: with length_penalty > 0 a longer output
      could still score higher;
    * or when n_best outputs are finished, and no open prefix can come to a higher score at any length, however
      certain the rest of it may be: log-probability / (max_length + 1) ** length_penalty;
    * or at its max_length, where a prefix ends if eos is its most likely continuation, and is cut otherwise.

    Sentences that have stopped leave the batch. An output does not depend on the other sentences, and with
    beam_size 1 it is that of `greedy_search`.

    Args:
        stepper: holds one row a sentence, with an empty prefix. From the second step on it holds beam_size rows
            a sentence, side by side.
        beam_size: K, open prefixes a sentence.
        n_best: outputs wanted of each sentence, at most beam_size.
        length_penalty: score = log_probability / length ** length_penalty; 0 ranks by probability alone.
        max_lengths: (B,) the longest output in tokens, eos not counted; longer ones are returned cut, with
            ended = False. Tokens are handed to the stepper on the device of this tensor.
        bos: what the first step is given.
        eos: the end symbol.
        forbidden: ids that never come out, such as those of padding and bos.
        observer: is told of every step; the search is the same without.

    Returns:
        For each sentence 1 to n_best different outputs, best first; fewer than n_best only where no more have a
        probability above 0. Where every continuation has probability 0, the prefixes up to there, cut.

    Raises:
        ValueError: an argument is out of its range.
        FloatingPointError: the model gave log-probabilities that are not numbers.
    """
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best = {n_best} must be between 1 and beam_size = {beam_size}")
    if length_penalty < 0:
        raise ValueError(f"length_penalty = {length_penalty} must not be negative")
    device = max_lengths.device
    beam = _Beam.start(check_limits(max_lengths).numpy())
    finished = _Finished(len(max_lengths), beam_size, n_best, length_penalty)
    tokens = torch.full((len(max_lengths),), bos, device=device)
    while len(beam.sentences):
        found = best_tokens(stepper.step(tokens), beam_size + 1, forbidden)
        values, ids = (part.numpy().reshape(*beam.log_probability.shape, -1) for part in found)  # (A, W, C)
        rows, beam = _advance(beam, values, ids, finished, beam_size=beam_size, eos=eos, observer=observer)
        if len(beam.sentences):
            if not np.array_equal(rows, np.arange(len(tokens))):
                stepper.select(torch.from_numpy(rows).to(device))
            # A row of probability 0 fills a place that nothing else can take; it must still be given a token.
            latest = np.where(beam.log_probability > -np.inf, beam.tokens[:, :, -1], eos)
            tokens = torch.from_numpy(latest.ravel()).to(device)
    return finished.best()


@dataclass(frozen=True)
class _Beam:
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
    def start(cls, limits: Whole) -> _Beam:
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

    def of(self, which: Whole) -> _Beam:
        """Only these of the A sentences."""
        return _Beam(
            self.sentences[which],
            self.limits[which],
            self.log_probability[which],
            self.tokens[which],
            self.token_scores[which],
        )

    def grow(self, candidates: _Candidates) -> _Beam:
        """Make each candidate (A, W') a hypothesis: T -> T + 1."""
        sentence = np.arange(len(self.sentences))[:, None]
        tokens = [self.tokens[sentence, candidates.parent], candidates.token[:, :, None]]
        scores = [self.token_scores[sentence, candidates.parent], candidates.value[:, :, None]]
        return _Beam(
            self.sentences,
            self.limits,
            candidates.total,
            np.concatenate(tokens, axis=2),
            np.concatenate(scores, axis=2),
        )


@dataclass(frozen=True)
class _Candidates:
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

    def at(self, places: Whole) -> _Candidates:
        """The candidates at these places (A, N')."""
        row = np.arange(len(places))[:, None]
        return _Candidates(
            self.parent[row, places], self.token[row, places], self.value[row, places], self.total[row, places]
        )

    def of(self, which: Whole) -> _Candidates:
        """All candidates of these of the A sentences."""
        return _Candidates(self.parent[which], self.token[which], self.value[which], self.total[which])


class _Finished:
    """The outputs found so far.

    `scores` (B, K) holds the K best scores of every sentence, best first, -inf where there are fewer.
    """

    def __init__(self, count: int, beam_size: int, n_best: int, length_penalty: float) -> None:
        self.scores = np.full((count, beam_size), -np.inf)
        self.n_best = n_best
        self.length_penalty = length_penalty
        self._outputs: list[list[Hypothesis]] = [[] for _ in range(count)]

    def add(self, beam: _Beam, which: NDArray[np.bool_], *, ended: bool) -> None:
        """Add the hypotheses of the beam that `which` (A, W) marks, but for those of probability 0."""
        scores = beam.log_probability / max(beam.length, 1) ** self.length_penalty
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

    def settled(self, beam: _Beam) -> NDArray[np.bool_]:
        """Whether a sentence can stop, as `beam_search` says: (A,)."""
        scores, best = self.scores[beam.sentences], beam.log_probability[:, 0]
        usual = scores[:, -1] >= best / max(beam.length, 1) ** self.length_penalty
        exact = scores[:, self.n_best - 1] >= best / (beam.limits + 1) ** self.length_penalty
        stopped: NDArray[np.bool_] = usual | exact
        return stopped

    def best(self) -> list[list[Hypothesis]]:
        """The n_best of each sentence, best first, the earlier first among equals."""
        ranked = [sorted(outputs, key=lambda output: -output.score) for outputs in self._outputs]
        return [outputs[: self.n_best] for outputs in ranked]


def _advance(
    beam: _Beam,
    values: Real,
    ids: Whole,
    finished: _Finished,
    *,
    beam_size: int,
    eos: int,
    observer: BeamObserver | None,
) -> tuple[Whole, _Beam]:
    """Go one token further.

    Args:
        beam: A sentences, W hypotheses each.
        values: (A, W, C) log-probabilities of the best next tokens, best first.
        ids: (A, W, C) those tokens.
        finished: gets the outputs that end here.
        beam_size: K.
        eos: the end symbol.
        observer: is told of the step.

    Returns:
        The rows of the stepper to go on with (A' x K,), and the beam of the A' sentences that go on.
    """
    candidates = _rank(beam, values, ids, 2 * beam_size, eos)
    possible = candidates.total > -np.inf
    stuck = ~possible.any(axis=1) & (finished.scores[beam.sentences, 0] == -np.inf)
    last = (stuck | (beam.limits <= beam.length)).nonzero()[0]
    ends = possible & (candidates.token == eos)
    if len(last):
        _close(beam.of(last), values[last], ids[last], finished, eos)
        ends[last] = False
    ending = ends & (np.arange(2 * beam_size) < beam_size)
    if ending.any():
        where = ending.any(axis=1).nonzero()[0]
        finished.add(beam.of(where).grow(candidates.of(where)), ending[where], ended=True)

    # At most one candidate a prefix is an end: K of the 2 K remain at least.
    staying = ends.argsort(axis=1, kind="stable")[:, :beam_size]
    kept = candidates.at(staying)
    grown = beam.grow(kept)
    going = ~finished.settled(grown)
    going[last] = False
    if observer is not None:
        observer.step(
            BeamStep(
                length=beam.length,
                sentences=beam.sentences,
                parent=candidates.parent,
                token=candidates.token,
                value=candidates.value,
                total=candidates.total,
                finished=ending,
                kept=staying,
                closed=np.isin(np.arange(len(going)), last),
                last_token=ids[:, :, 0],
                last_value=values[:, :, 0],
                going=going.copy(),
                scores=finished.scores[beam.sentences],
            )
        )
    places = going.nonzero()[0]
    rows = places[:, None] * values.shape[1] + kept.parent[places]
    return rows.ravel(), grown if len(places) == len(going) else grown.of(places)


def _rank(beam: _Beam, values: Real, ids: Whole, count: int, eos: int) -> _Candidates:
    """Merge the candidates of a sentence's prefixes (A, W, C) into its best ones (A, count)."""
    sentences, width, choices = values.shape
    total = (beam.log_probability[:, :, None] + values).reshape(sentences, -1)  # (A, W x C)
    ids, values = ids.reshape(sentences, -1), values.reshape(sentences, -1)
    if (missing := count - width * choices) > 0:
        empty = np.full((sentences, missing), -np.inf)
        total, values = (np.concatenate([part, empty], axis=1) for part in (total, values))
        ids = np.concatenate([ids, np.full((sentences, missing), eos)], axis=1)
    order = (-total).argsort(axis=1, kind="stable")[:, :count]
    row = np.arange(sentences)[:, None]
    parent = np.minimum(order // choices, width - 1)
    return _Candidates(parent, ids[row, order], values[row, order], total[row, order])


def _close(beam: _Beam, values: Real, ids: Whole, finished: _Finished, eos: int) -> None:
    """Finish every hypothesis of these sentences: it ends if eos is its most likely continuation, or is cut."""
    value, token = values[:, :, 0], ids[:, :, 0]
    ends = (token == eos) & (value > -np.inf)
    parent = np.broadcast_to(np.arange(values.shape[1]), value.shape)
    grown = beam.grow(_Candidates(parent, token, value, beam.log_probability + value))
    finished.add(grown, ends, ended=True)
    finished.add(beam, ~ends, ended=False)
