"""Log-probabilities and next tokens in NumPy arrays, and decoding with one hypothesis a row: no torch is needed.

Shapes: R rows, A open rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import OverflowedError
from manyheads.search.interface import Hypothesis, SpecialIds, make_hypothesis
from manyheads.search.options import Sampling

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Appends the latest token of each open row (A,), whose indices are (A,); returns the next token of each (A,) and
# its log-probability (A,), float64, -inf where no token can follow.
NextTokens = Callable[[IntArray, IntArray], tuple[IntArray, FloatArray]]

# Log-probabilities (A, V) and indices of the open rows (A,) -> as `NextTokens`.
ChooseTokens = Callable[[FloatArray, IntArray], tuple[IntArray, FloatArray]]

# Yields at each step the rows that stay open and their new tokens; returns the output of every row.
DecodingSteps = Generator[tuple[list[int], list[int]], None, list[Hypothesis]]


def log_softmax(logits: NDArray[np.floating]) -> FloatArray:
    """Return log-probabilities in float64: (..., V) -> (..., V)."""
    shifted = logits.astype(np.float64)
    with np.errstate(invalid="ignore"):  # values that are not finite are reported by those who choose tokens
        shifted -= shifted.max(-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(-1, keepdims=True))
    return shifted


def best_tokens(log_probs: FloatArray, count: int, suppressed: Sequence[int]) -> IntArray:
    """Return the likeliest possible tokens of a row (V,), best first; of equal ones the lower id comes first."""
    allowed = log_probs.copy()
    allowed[list(suppressed)] = -np.inf
    if count < len(allowed):
        worst = np.partition(allowed, -count)[-count]
        candidates = np.flatnonzero(allowed >= worst)
    else:
        candidates = np.arange(len(allowed))
    order = candidates[np.argsort(-allowed[candidates], kind="stable")][:count]
    return order[allowed[order] > -np.inf]


def likeliest(log_probs: FloatArray, suppressed: Sequence[int]) -> tuple[IntArray, FloatArray]:
    """Return the likeliest token of each row, of equal ones the lower id, and its log-probability: twice (R,)."""
    allowed = _without(log_probs, suppressed)
    tokens = allowed.argmax(1)
    return tokens, allowed[np.arange(len(tokens)), tokens]


def sampler(
    sampling: Sampling, keys: Sequence[tuple[int, Sequence[int]]], suppressed: Sequence[int]
) -> ChooseTokens:
    """Return the function that draws the next tokens; each row has its own random number generator.

    The key of a row is the index of the sample and the source; equal keys give equal random numbers.
    """
    rngs = [sampling.make_rng(draw, source) for draw, source in keys]

    def choose(log_probs: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        uniform = np.array([rngs[row].random() for row in rows.tolist()])
        return draw_tokens(log_probs, uniform, sampling, suppressed)

    return choose


def draw_tokens(
    log_probs: FloatArray, uniform: FloatArray, sampling: Sampling, suppressed: Sequence[int]
) -> tuple[IntArray, FloatArray]:
    """Draw one token a row by the inverse of the cumulative distribution, in double precision.

    The cumulative sum runs in the order of ids, not of probabilities: a rounding error of the model then moves the
    boundaries between tokens by no more than the size of the error, and never swaps two tokens. It is drawn from
    log-probabilities of the model (R, V) and random numbers in [0, 1) (R,).

    Returns:
        Tokens (R,), and their log-probabilities in the model's own distribution (R,); -inf where no token has a
        probability above 0.
    """
    allowed = _without(log_probs, suppressed)
    cumulative = drawing_weights(allowed, sampling).cumsum(1)
    total = cumulative[:, -1:]
    target = np.minimum(uniform[:, None] * total, np.nextafter(total, 0))
    tokens = np.minimum((cumulative <= target).sum(1), allowed.shape[1] - 1)
    return tokens, allowed[np.arange(len(tokens)), tokens]


def drawing_weights(log_probs: FloatArray, sampling: Sampling) -> FloatArray:
    """Return unnormalised probabilities, 1 for the likeliest token: log-probabilities (R, V) -> (R, V)."""
    largest = np.maximum(log_probs.max(1, keepdims=True), np.finfo(np.float64).min)
    weights: FloatArray = np.exp((log_probs - largest) / sampling.temperature)
    if sampling.top_k or sampling.top_p < 1:
        weights *= _nucleus(weights, sampling.top_k or weights.shape[1], sampling.top_p)
    return weights


def _nucleus(weights: FloatArray, top_k: int, top_p: float) -> NDArray[np.bool_]:
    """Mark the top_k largest weights of each row, and of these the fewest whose share is top_p: (R, V).

    Of equal weights the lower id comes first.
    """
    order = np.argsort(-weights, axis=1, kind="stable")
    ranked = np.take_along_axis(weights, order, axis=1)
    ranked[:, top_k:] = 0
    mass_before = ranked.cumsum(1) - ranked
    kept = (ranked > 0) & (mass_before < top_p * ranked.sum(1, keepdims=True))
    marked = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(marked, order, kept, axis=1)
    return marked


def _without(log_probs: FloatArray, suppressed: Sequence[int]) -> FloatArray:
    """Return a copy (R, V) in which suppressed tokens are impossible.

    Raises:
        OverflowedError: a log-probability is not a number.
    """
    if np.isnan(log_probs).any():
        raise OverflowedError
    allowed = log_probs.astype(np.float64)
    allowed[:, list(suppressed)] = -np.inf
    return allowed


def decode_steps(
    next_tokens: NextTokens,
    select: Callable[[IntArray], None],
    limits: Sequence[int],
    length_penalty: float,
    special: SpecialIds,
) -> DecodingSteps:
    """Decode one step at a time until the end symbol or the limit of each row; rows that have ended leave.

    `select` keeps some of the open rows, in order: indices of the open rows.
    """
    outputs: dict[int, Hypothesis] = {}
    maximum, rows = np.asarray(limits), np.arange(len(limits))
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    latest = np.full(len(limits), special.bos)
    while len(rows):
        token, value = next_tokens(latest, rows)
        possible = value > -np.inf
        ended = possible & (token == special.eos)
        active = possible & ~ended & (maximum[rows] > [len(tokens[number]) for number in rows.tolist()])
        for row, number in enumerate(rows.tolist()):
            if active[row] or ended[row]:
                tokens[number].append(int(token[row]))
                scores[number].append(float(value[row]))
            if not active[row]:
                outputs[number] = make_hypothesis(
                    tokens[number], scores[number], ended=bool(ended[row]), length_penalty=length_penalty
                )
        kept = active.nonzero()[0]
        latest, rows = token[kept], rows[kept]
        yield rows.tolist(), latest.tolist()
        if 0 < len(kept) < len(active):
            select(kept)
    return [outputs[number] for number in range(len(limits))]


def run_steps(steps: DecodingSteps) -> list[Hypothesis]:
    """Run all steps of a decoding; return the output of every row."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outputs: list[Hypothesis] = end.value
            return outputs
