"""Beam search (section 6.1), one batch of sentences at a time.

Shapes: B sentences, of which A are still open; W open hypotheses a sentence (1 at first, then K = beam_size);
R = A x W rows; C candidates a row. A step copies C candidates a row from the device to the CPU, and R tokens and R
row indices back.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from manyheads.decoding.candidates import best_tokens
from manyheads.search.beam_state import (
    Beam,
    BeamObserver,
    BeamStep,
    Continuations,
    Finished,
    FloatArray,
    IntArray,
)
from manyheads.search.interface import Hypothesis, SpecialIds, Stepper
from manyheads.search.options import SearchOptions


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    options: SearchOptions,
    max_lengths: Tensor,
    special: SpecialIds,
    observer: BeamObserver | None = None,
) -> list[list[Hypothesis]]:
    """Search with a beam: keep the beam_size most likely prefixes of every sentence; return its best outputs.

    At each step the 2 x beam_size best continuations of a sentence's prefixes are ranked by log-probability
    (ties: earlier prefix first, then the likelier token, then the lower id). Those among the first beam_size
    that end in eos are finished; the first beam_size of the others stay open.

    A sentence stops

    * when beam_size outputs are finished, and none of them has a lower score than the best open prefix would
      have at its present length; this stop is usual but not exact: with length_penalty > 0 a longer output
      could still score higher;
    * or when n_best outputs are finished, and no open prefix can reach a higher score at any length, even if all
      its further tokens had probability 1: log-probability / (max_length + 1) ** length_penalty;
    * or at its max_length, where a prefix ends if eos is its most likely continuation, and is cut otherwise.

    Sentences that have stopped leave the batch. An output does not depend on the other sentences. With beam_size 1
    the output is that of `greedy_search`.

    Args:
        stepper: holds one row a sentence, with an empty prefix. From the second step on it holds beam_size rows
            a sentence, next to each other.
        options: `beam_size`, `n_best` (at most beam_size) and `length_penalty` are used.
        max_lengths: (B,) maximum output length in tokens, the end symbol not counted. An output that reaches it
            without the end symbol is returned cut, with ended = False. Tokens are passed to the stepper on the
            device of this tensor.
        special: special ids of the target vocabulary.
        observer: receives every step; it does not change the search.

    Returns:
        For each sentence 1 to n_best different outputs, best first; fewer than n_best only where no further output
        has a probability above 0. Where every continuation has probability 0, the open prefixes, cut.
    """
    device = max_lengths.device
    beam = Beam.start(max_lengths.cpu().numpy())
    finished = Finished(beam.limits, options)
    tokens = torch.full((len(beam.limits),), special.bos, device=device)
    while len(beam.sentences):
        best = best_tokens(stepper.step(tokens), options.beam_size + 1, special.suppressed)
        values, ids = (array.numpy().reshape(*beam.log_probability.shape, -1) for array in best)  # (A, W, C)
        rows, beam = _advance(beam, values, ids, finished, options.beam_size, special.eos, observer)
        if len(beam.sentences):
            if not np.array_equal(rows, np.arange(len(tokens))):
                stepper.select(_to_device(rows, device))
            # A row of probability 0 only fills the beam; the stepper still needs a token for it.
            latest = np.where(beam.log_probability > -np.inf, beam.tokens[:, :, -1], special.eos)
            tokens = _to_device(latest.ravel(), device)
    return [finished.best(sentence) for sentence in range(len(max_lengths))]


def _to_device(array: IntArray, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.to(device)


def _advance(
    beam: Beam,
    values: FloatArray,
    ids: IntArray,
    finished: Finished,
    beam_size: int,
    eos: int,
    observer: BeamObserver | None,
) -> tuple[IntArray, Beam]:
    """Extend the beam of A sentences by one token.

    The best next tokens, best first, have log-probabilities (A, W, C) and ids (A, W, C); `finished` collects the
    outputs that end at this step.

    Returns:
        The rows (A' x K,) that the stepper has to select, and the beam of the A' sentences that stay open.
    """
    candidates = _rank(beam, values, ids, 2 * beam_size, eos)
    possible = candidates.total > -np.inf
    stuck = ~possible.any(axis=1) & (finished.scores[beam.sentences, 0] == -np.inf)
    last = (stuck | (beam.limits <= beam.length)).nonzero()[0]
    ends = possible & (candidates.token == eos)
    if len(last):
        _close(beam.select_sentences(last), values[last], ids[last], finished, eos)
        ends[last] = False
    ending = ends & (np.arange(2 * beam_size) < beam_size)
    if ending.any():
        sentences = ending.any(axis=1).nonzero()[0]
        ended = beam.select_sentences(sentences).extend(candidates.select_sentences(sentences))
        finished.add(ended, ending[sentences], ended=True)

    # At most one candidate a prefix ends with eos, so at least K of the 2 K candidates remain.
    staying = ends.argsort(axis=1, kind="stable")[:, :beam_size]
    continuations = candidates.gather(staying)
    extended = beam.extend(continuations)
    active = ~finished.can_stop(extended)
    active[last] = False
    if observer is not None:
        observer.step(
            BeamStep(
                length=beam.length,
                sentences=beam.sentences,
                candidates=candidates,
                finished=ending,
                kept=staying,
                closed=np.isin(np.arange(len(active)), last),
                last_token=ids[:, :, 0],
                last_value=values[:, :, 0],
                active=active.copy(),
                scores=finished.scores[beam.sentences],
            )
        )
    remaining = active.nonzero()[0]
    rows = remaining[:, None] * values.shape[1] + continuations.parent[remaining]
    return rows.ravel(), extended if len(remaining) == len(active) else extended.select_sentences(remaining)


def _rank(beam: Beam, values: FloatArray, ids: IntArray, count: int, eos: int) -> Continuations:
    """Rank the candidates of all prefixes of a sentence: (A, W, C) -> the best (A, count)."""
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
    return Continuations(parent, ids[row, order], values[row, order], total[row, order])


def _close(beam: Beam, values: FloatArray, ids: IntArray, finished: Finished, eos: int) -> None:
    """Finish every hypothesis at the length limit: ended if eos is its most likely continuation, else cut."""
    value, token = values[:, :, 0], ids[:, :, 0]
    ends = (token == eos) & (value > -np.inf)
    parent = np.broadcast_to(np.arange(values.shape[1]), value.shape)
    extended = beam.extend(Continuations(parent, token, value, beam.log_probability + value))
    finished.add(extended, ends, ended=True)
    finished.add(beam, ~ends, ended=False)
