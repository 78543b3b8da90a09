"""Sampling: tokens drawn from the model's distribution.

Shapes: B sentences, D samples a sentence, R = B x D rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.decoding.greedy import decode_steps
from manyheads.search.arrays import FloatArray, IntArray, run_steps, sampler
from manyheads.search.interface import Hypothesis, SpecialIds, Stepper
from manyheads.search.options import SearchOptions


def sample(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
    max_lengths: Tensor,
    special: SpecialIds,
) -> list[list[Hypothesis]]:
    """Draw outputs token by token (ancestral sampling); scores come from the model's own distribution.

    The random numbers of a sample are a function of the seed, the source and the index of the sample. A sample
    therefore does not depend on the other sentences, and equal sources get equal samples. D is `n_best`; for the
    other arguments see `beam_search`.

    Returns:
        D outputs a sentence in the order in which they were drawn; some may be equal.
    """
    draws = options.n_best
    assert options.sampling is not None
    keys = [(draw, source) for source in sources for draw in range(draws)]
    draw = sampler(options.sampling, keys, special.suppressed)
    if draws > 1:
        rows = torch.arange(len(sources), device=max_lengths.device).repeat_interleave(draws)
        stepper.select(rows)
        max_lengths = max_lengths[rows]

    def choose(log_probs: Tensor, rows: IntArray) -> tuple[IntArray, FloatArray]:
        return draw(log_probs.cpu().double().numpy(), rows)

    outputs = run_steps(decode_steps(stepper, choose, options, max_lengths, special))
    return [outputs[start : start + draws] for start in range(0, len(outputs), draws)]
