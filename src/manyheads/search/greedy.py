"""Decoding with one hypothesis a sentence: a function chooses each next token; greedy search takes the likeliest.

Shapes: B sentences, of which A are still open; V vocabulary. All state of the search is on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
import torch
from torch import Tensor

from manyheads.search.candidates import best_tokens
from manyheads.search.interface import Hypothesis, SpecialIds, Stepper, make_hypothesis
from manyheads.search.options import SearchOptions

# Log-probabilities (A, V) and indices (A,) of the open sentences -> the next token of each (A,) and its
# log-probability (A,), float64, -inf where no token can follow; both on the CPU.
ChooseTokens = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

# Yields at each step the sentences that stay open and their new tokens; returns the output of every sentence.
DecodingSteps = Generator[tuple[list[int], list[int]], None, list[Hypothesis]]


def greedy_search(
    stepper: Stepper, options: SearchOptions, max_lengths: Tensor, special: SpecialIds
) -> list[Hypothesis]:
    """Append the most likely token to every sentence until the end symbol; of equally likely tokens the lower id.

    Sentences that have ended leave the batch; an output that no token can follow is returned cut. An output does
    not depend on the other sentences. The length penalty changes only its score.

    Args:
        stepper: holds one row a sentence, with an empty prefix.
        options: `length_penalty` is used.
        max_lengths: see `beam_search`, also for `special`.
        special: special ids of the target vocabulary.

    Raises:
        OverflowedError: the model gave log-probabilities that are not numbers.
    """
    return run_steps(decode_steps(stepper, greedy_choice(special.suppressed), options, max_lengths, special))


def greedy_choice(suppressed: Sequence[int]) -> ChooseTokens:
    """Return the function that chooses the most likely token that is not suppressed."""

    def choose(log_probs: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        values, ids = best_tokens(log_probs, 1, suppressed)
        return ids[:, 0], values[:, 0]

    return choose


@torch.no_grad()
def decode_steps(
    stepper: Stepper, choose: ChooseTokens, options: SearchOptions, max_lengths: Tensor, special: SpecialIds
) -> DecodingSteps:
    """Decode with the tokens that `choose` returns, one step at a time; see `greedy_search`."""
    device, limits = max_lengths.device, max_lengths.cpu().numpy()
    outputs: dict[int, Hypothesis] = {}
    sentences = np.arange(len(limits))
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    latest = torch.full((len(limits),), special.bos, device=device)
    while len(sentences):
        token, value = (tensor.numpy() for tensor in choose(stepper.step(latest), torch.from_numpy(sentences)))
        possible = value > -np.inf
        ended = possible & (token == special.eos)
        active = possible & ~ended & (limits[sentences] > [len(tokens[number]) for number in sentences.tolist()])
        for row, number in enumerate(sentences.tolist()):
            if active[row] or ended[row]:
                tokens[number].append(int(token[row]))
                scores[number].append(float(value[row]))
            if not active[row]:
                outputs[number] = make_hypothesis(
                    tokens[number], scores[number], ended=bool(ended[row]), length_penalty=options.length_penalty
                )
        rows = active.nonzero()[0]
        token, sentences = token[rows], sentences[rows]
        yield sentences.tolist(), token.tolist()
        if 0 < len(rows) < len(active):
            stepper.select(torch.from_numpy(rows).to(device))
        latest = torch.from_numpy(token).to(device)
    return [outputs[sentence] for sentence in range(len(limits))]


def run_steps(steps: DecodingSteps) -> list[Hypothesis]:
    """Run all steps of a decoding; return the output of every sentence."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outputs: list[Hypothesis] = end.value
            return outputs
