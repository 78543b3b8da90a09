"""Sampling: tokens drawn from the model's distribution.

Shapes: B sentences, D samples a sentence, R = B x D rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.errors import OverflowedError
from manyheads.search.greedy import ChooseTokens, decode_steps, run_steps
from manyheads.search.interface import Hypothesis, SpecialIds, Stepper
from manyheads.search.options import Sampling, SearchOptions


def sample(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
    max_lengths: Tensor,
    special: SpecialIds,
) -> list[list[Hypothesis]]:
    """Draw outputs token by token (ancestral sampling); scores come from the model's own distribution.

    The random numbers of a sample are a function of the seed, the source and the index of the sample. A sample
    therefore does not depend on the other sentences, and equal sources get equal samples.

    Args:
        stepper: holds one row a sentence, with an empty prefix.
        sources: ids of each source sentence, the key of its random numbers.
        options: `sampling`, `length_penalty` and `n_best`, the number of samples a sentence D, are used.
        max_lengths: (B,) see `beam_search`, also for `special`.
        special: special ids of the target vocabulary.

    Returns:
        D outputs a sentence in the order in which they were drawn; some may be equal.
    """
    draws = options.n_best
    assert options.sampling is not None
    keys = [(draw, source) for source in sources for draw in range(draws)]
    choose = sampling_choice(options.sampling, keys, special.suppressed)
    if draws > 1:
        rows = torch.arange(len(sources), device=max_lengths.device).repeat_interleave(draws)
        stepper.select(rows)
        max_lengths = max_lengths[rows]
    outputs = run_steps(decode_steps(stepper, choose, options, max_lengths, special))
    return [outputs[start : start + draws] for start in range(0, len(outputs), draws)]


def sampling_choice(
    sampling: Sampling, keys: Sequence[tuple[int, Sequence[int]]], suppressed: Sequence[int]
) -> ChooseTokens:
    """Return the function that draws the next tokens; each row has its own random number generator.

    Args:
        sampling: temperature, top_k, top_p, seed.
        keys: for each row the index of the sample and the source; equal keys give equal random numbers.
        suppressed: ids that are never drawn.
    """
    rngs = [sampling.make_rng(draw, source) for draw, source in keys]

    def choose(log_probs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        uniform = torch.tensor([rngs[row].random() for row in rows.tolist()], dtype=torch.float64)
        return _draw_tokens(log_probs, uniform, sampling, suppressed)

    return choose


def _draw_tokens(
    log_probs: Tensor, uniform: Tensor, sampling: Sampling, suppressed: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Draw one token a row by the inverse of the cumulative distribution, in double precision on the CPU.

    The cumulative sum runs in the order of ids, not of probabilities: a rounding error of the model then moves the
    boundaries between tokens by no more than the size of the error, and never swaps two tokens.

    Args:
        log_probs: log-probabilities of the model (R, V).
        uniform: random numbers in [0, 1) (R,).
        sampling: temperature, top_k and top_p.
        suppressed: ids that are never drawn.

    Returns:
        Tokens (R,), and their log-probabilities in the model's own distribution (R,), float64; -inf where no token
        has a probability above 0.

    Raises:
        OverflowedError: a log-probability is not a number.
    """
    model_log_probs = log_probs.to("cpu", torch.float64, copy=True)
    if model_log_probs.isnan().any():
        raise OverflowedError
    model_log_probs[:, list(suppressed)] = -torch.inf
    weights = drawing_weights(model_log_probs, sampling)
    cumulative = weights.cumsum(dim=1)
    total = cumulative[:, -1:]
    target = torch.minimum(uniform[:, None] * total, total.nextafter(torch.zeros_like(total)))
    tokens = (cumulative <= target).sum(dim=1).clamp(max=weights.size(1) - 1)
    return tokens, model_log_probs.gather(1, tokens[:, None])[:, 0]


def drawing_weights(own: Tensor, sampling: Sampling) -> Tensor:
    """Return unnormalised probabilities, 1 for the likeliest token: log-probabilities (R, V) -> (R, V)."""
    likeliest = own.max(dim=1, keepdim=True).values.clamp(min=torch.finfo(own.dtype).min)
    weights = ((own - likeliest) / sampling.temperature).exp()
    if sampling.top_k or sampling.top_p < 1:
        weights = weights * _nucleus(weights, sampling.top_k or weights.size(1), sampling.top_p)
    return weights


def _nucleus(weights: Tensor, top_k: int, top_p: float) -> Tensor:
    """Mark the top_k largest weights of each row, and of these the fewest whose share is top_p: (R, V) bool.

    Of equal weights the lower id comes first.
    """
    ranked, order = weights.sort(dim=1, descending=True, stable=True)
    ranked[:, top_k:] = 0
    mass_before = ranked.cumsum(dim=1) - ranked
    selected = (ranked > 0) & (mass_before < top_p * ranked.sum(dim=1, keepdim=True))
    return torch.zeros_like(selected).scatter(1, order, selected)
