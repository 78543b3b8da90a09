"""Outputs drawn by chance from what the model says.

Shapes: B sentences, D draws a sentence, R = B x D rows, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manyheads.search.greedy import Choose, follow, results
from manyheads.search.interface import Hypothesis, Stepper
from manyheads.search.options import Sampling

__all__ = ["draw_tokens", "drawing_weights", "sample", "sampling_choice"]


def sample(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    sampling: Sampling,
    *,
    draws: int,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    forbidden: Sequence[int] = (),
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Draw outputs token by token (ancestral sampling); scores are those of the model itself.

    Every draw has its own random numbers, a function of the seed, the source and the number of the draw. So it
    does not depend on the other sentences, and equal sources get equal draws.

    Args:
        stepper: holds one row a sentence, with an empty prefix.
        sources: something that tells each sentence, such as its ids.
        sampling: temperature, top_k, top_p, seed.
        draws: D.
        max_lengths: the longest output of each sentence in tokens (B,), as for `greedy_search`.
        bos: what the first step is given.
        eos: the end symbol.
        forbidden: ids that never come out.
        length_penalty: exponent of the length in `Hypothesis.score`.

    Returns:
        D outputs a sentence in the order in which they were drawn; some may be equal.
    """
    choose = sampling_choice(
        sampling, [(draw, source) for source in sources for draw in range(draws)], forbidden=forbidden
    )
    if draws > 1:
        rows = torch.arange(len(sources), device=max_lengths.device).repeat_interleave(draws)
        stepper.select(rows)
        max_lengths = max_lengths[rows]
    found = results(
        follow(stepper, choose, max_lengths=max_lengths, bos=bos, eos=eos, length_penalty=length_penalty)
    )
    return [found[start : start + draws] for start in range(0, len(found), draws)]


def sampling_choice(
    sampling: Sampling, keys: Sequence[tuple[int, Sequence[int]]], *, forbidden: Sequence[int]
) -> Choose:
    """The choice by chance; each row has its own random numbers.

    Args:
        sampling: how the distribution is changed first, and the seed.
        keys: the number of the draw and the source of each row: equal ones draw alike.
        forbidden: ids that are never drawn.
    """
    dice = [generator(sampling.seed, draw, source) for draw, source in keys]

    def choose(log_probs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        chances = torch.tensor([dice[row].random() for row in rows.tolist()], dtype=torch.float64)
        return draw_tokens(log_probs, chances, sampling, forbidden)

    return choose


def generator(seed: int, draw: int, source: Sequence[int]) -> np.random.Generator:
    """The random numbers of one draw."""
    key = hashlib.sha256(repr((seed, draw, [int(token) for token in source])).encode()).digest()
    return np.random.default_rng(int.from_bytes(key, "big"))


def draw_tokens(
    log_probs: Tensor, chances: Tensor, sampling: Sampling, forbidden: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Draw one token a row by the inverse of the cumulative distribution, in double precision on the CPU.

    The distribution is added up in the order of ids, so that a rounding of the model's numbers moves its steps by
    as little as itself, and does not swap two of them.

    Args:
        log_probs: of the model (R, V).
        chances: uniform in [0, 1) (R,).
        sampling: how the distribution is changed first.
        forbidden: ids that are never drawn.

    Returns:
        Tokens (R,), and their log-probabilities in the model's own distribution (R,), float64; -inf where there
        was nothing to draw.

    Raises:
        FloatingPointError: a log-probability is not a number.
    """
    own = log_probs.to("cpu", torch.float64, copy=True)
    if own.isnan().any():
        raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
    own[:, list(forbidden)] = -torch.inf
    weights = drawing_weights(own, sampling)
    cumulative = weights.cumsum(dim=1)
    total = cumulative[:, -1:]
    wanted = torch.minimum(chances[:, None] * total, total.nextafter(torch.zeros_like(total)))
    tokens = (cumulative <= wanted).sum(dim=1).clamp(max=weights.size(1) - 1)
    return tokens, own.gather(1, tokens[:, None])[:, 0]


def drawing_weights(own: Tensor, sampling: Sampling) -> Tensor:
    """How likely each token is to be drawn, as a multiple of the likeliest: log-probabilities (R, V) -> (R, V)."""
    likeliest = own.max(dim=1, keepdim=True).values.clamp(min=torch.finfo(own.dtype).min)
    weights = ((own - likeliest) / sampling.temperature).exp()  # the likeliest is 1
    if sampling.top_k or sampling.top_p < 1:
        weights = weights * nucleus(weights, sampling.top_k or weights.size(1), sampling.top_p)
    return weights


def nucleus(weights: Tensor, top_k: int, top_p: float) -> Tensor:
    """Mark the top_k largest weights of a row, and of these the fewest that hold a share of top_p: (R, V), bool.

    The lower id comes first among equals.
    """
    ranked, order = weights.sort(dim=1, descending=True, stable=True)
    ranked[:, top_k:] = 0
    before = ranked.cumsum(dim=1) - ranked
    kept = (ranked > 0) & (before < top_p * ranked.sum(dim=1, keepdim=True))
    return torch.zeros_like(kept).scatter(1, order, kept)
