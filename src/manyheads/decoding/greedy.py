"""Decoding with one hypothesis a sentence: a function chooses each next token; greedy search takes the likeliest.

Shapes: B sentences, of which A are still open; V vocabulary. The state of the search is in NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from manyheads.decoding.candidates import best_tokens
from manyheads.search import arrays
from manyheads.search.arrays import DecodingSteps, FloatArray, IntArray, run_steps
from manyheads.search.interface import Hypothesis, SpecialIds, Stepper
from manyheads.search.options import SearchOptions

# Log-probabilities (A, V) and indices (A,) of the open sentences -> the next token of each (A,) and its
# log-probability (A,), float64, -inf where no token can follow.
ChooseTokens = Callable[[Tensor, IntArray], tuple[IntArray, FloatArray]]


def greedy_search(
    stepper: Stepper, options: SearchOptions, max_lengths: Tensor, special: SpecialIds
) -> list[Hypothesis]:
    """Append the most likely token to every sentence until the end symbol; of equally likely tokens the lower id.

    Sentences that have ended leave the batch; an output that no token can follow is returned cut. An output does
    not depend on the other sentences. The length penalty changes only its score. For the arguments see
    `beam_search`.
    """
    return run_steps(decode_steps(stepper, greedy_choice(special.suppressed), options, max_lengths, special))


def greedy_choice(suppressed: Sequence[int]) -> ChooseTokens:
    """Return the function that chooses the most likely token that is not suppressed."""

    def choose(log_probs: Tensor, sentences: IntArray) -> tuple[IntArray, FloatArray]:
        values, ids = best_tokens(log_probs, 1, suppressed)
        return ids[:, 0].numpy(), values[:, 0].numpy()

    return choose


@torch.no_grad()
def decode_steps(
    stepper: Stepper, choose: ChooseTokens, options: SearchOptions, max_lengths: Tensor, special: SpecialIds
) -> DecodingSteps:
    """Decode with the tokens that `choose` returns, one step at a time; see `greedy_search`."""
    device = max_lengths.device

    def next_tokens(latest: IntArray, sentences: IntArray) -> tuple[IntArray, FloatArray]:
        return choose(stepper.step(torch.from_numpy(latest).to(device)), sentences)

    def select(rows: IntArray) -> None:
        stepper.select(torch.from_numpy(rows).to(device))

    limits = max_lengths.tolist()
    return (yield from arrays.decode_steps(next_tokens, select, limits, options.length_penalty, special))
