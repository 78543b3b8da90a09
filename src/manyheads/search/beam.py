"""Beam search (section 6.1), one batch of sentences at a time.

Shapes: B sentences, of which A are still open; W open hypotheses a sentence (1 at first, then K = beam_size);
R = A x W rows; C candidates a row. What a step moves from the device is C candidates a row, and back go R tokens
and R row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from manyheads.search.beam_state import Beam, Continuations, Finished, Real, Whole
from manyheads.search.candidates import best_tokens, check_limits
from manyheads.search.interface import Hypothesis, Stepper
from manyheads.search.watching import BeamObserver, BeamStep

__all__ = ["BeamSteps", "beam_search", "beam_steps"]

# The tokens (R,) that the stepper appends -> the best next tokens of its rows: log-probabilities and ids (R, C).
BeamSteps = Generator[Tensor, tuple[Real, Whole], None]
Tell = Callable[[int, list[Hypothesis]], None]


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
    found: dict[int, list[Hypothesis]] = {}
    steps = beam_steps(
        stepper.select,
        found.__setitem__,
        beam_size=beam_size,
        n_best=n_best,
        length_penalty=length_penalty,
        max_lengths=max_lengths,
        bos=bos,
        eos=eos,
        observer=observer,
    )
    with suppress(StopIteration):
        tokens = next(steps)
        while True:
            values, ids = best_tokens(stepper.step(tokens), beam_size + 1, forbidden)
            tokens = steps.send((values.numpy(), ids.numpy()))
    return [found[sentence] for sentence in range(len(max_lengths))]


def beam_steps(
    select: Callable[[Tensor], None],
    tell: Tell,
    *,
    beam_size: int,
    n_best: int,
    length_penalty: float,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    observer: BeamObserver | None = None,
) -> BeamSteps:
    """`beam_search` a step at a time, for who has the stepper take it: several searches may take theirs together.

    Args:
        select: of the stepper.
        tell: gets the number of each sentence and its outputs as soon as it stops.
        beam_size: this and all others as `beam_search`.
        n_best: outputs wanted.
        length_penalty: of the score.
        max_lengths: the longest outputs (B,).
        bos: what the first step is given.
        eos: the end symbol.
        observer: is told of every step.

    Yields:
        What the stepper is to append; it is sent the beam_size + 1 best next tokens of each row.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"n_best = {n_best} must be between 1 and beam_size = {beam_size}")
    if length_penalty < 0:
        raise ValueError(f"length_penalty = {length_penalty} must not be negative")
    device = max_lengths.device
    beam = Beam.start(check_limits(max_lengths).numpy())
    finished = Finished(beam.limits, beam_size, n_best, length_penalty)
    tokens = torch.full((len(max_lengths),), bos, device=device)
    while len(beam.sentences):
        found, before = (yield tokens), beam.sentences
        shape = (*beam.log_probability.shape, -1)
        values, ids = found[0].reshape(shape), found[1].reshape(shape)  # (A, W, C)
        rows, beam = _advance(beam, values, ids, finished, beam_size=beam_size, eos=eos, observer=observer)
        if len(beam.sentences) < len(before):
            for sentence in np.setdiff1d(before, beam.sentences).tolist():
                tell(sentence, finished.best(sentence))
        if len(beam.sentences):
            if not np.array_equal(rows, np.arange(len(tokens))):
                select(on(device, rows))
            # A row of probability 0 fills a place that nothing else can take; it must still be given a token.
            latest = np.where(beam.log_probability > -np.inf, beam.tokens[:, :, -1], eos)
            tokens = on(device, latest.ravel())


def on(device: torch.device, array: Whole) -> Tensor:
    """An array as a tensor on a device."""
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.to(device)


def _advance(
    beam: Beam,
    values: Real,
    ids: Whole,
    finished: Finished,
    *,
    beam_size: int,
    eos: int,
    observer: BeamObserver | None,
) -> tuple[Whole, Beam]:
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


def _rank(beam: Beam, values: Real, ids: Whole, count: int, eos: int) -> Continuations:
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
    return Continuations(parent, ids[row, order], values[row, order], total[row, order])


def _close(beam: Beam, values: Real, ids: Whole, finished: Finished, eos: int) -> None:
    """Finish every hypothesis of these sentences: it ends if eos is its most likely continuation, or is cut."""
    value, token = values[:, :, 0], ids[:, :, 0]
    ends = (token == eos) & (value > -np.inf)
    parent = np.broadcast_to(np.arange(values.shape[1]), value.shape)
    grown = beam.grow(Continuations(parent, token, value, beam.log_probability + value))
    finished.add(grown, ends, ended=True)
    finished.add(beam, ~ends, ended=False)
