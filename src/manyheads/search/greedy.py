"""Greedy search: the most likely token at every step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.search.candidates import best_tokens, check_limits, make_hypothesis
from manyheads.search.interface import Hypothesis, Stepper

__all__ = ["greedy_search"]


@torch.no_grad()
def greedy_search(
    stepper: Stepper,
    *,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    forbidden: Sequence[int] = (),
    length_penalty: float = 1.0,
) -> list[Hypothesis]:
    """Follow the most likely token of every sentence until the end symbol; the lower id wins among equals.

    Sentences that have ended leave the batch. An output does not depend on the other sentences.

    Args:
        stepper: holds one row a sentence, with an empty prefix.
        max_lengths: (B,) the longest output in tokens, the end symbol not counted. An output that would go on,
            or after which nothing can come, is returned cut, with ended = False. Tokens are handed to the
            stepper on the device of this tensor.
        bos: what the first step is given.
        eos: the end symbol.
        forbidden: ids that never come out, such as those of padding and bos.
        length_penalty: exponent of the length in `Hypothesis.score`; it does not change the output.

    Raises:
        ValueError: a max_length is negative.
        FloatingPointError: the model gave log-probabilities that are not numbers.
    """
    device, limits = max_lengths.device, check_limits(max_lengths)
    results: dict[int, Hypothesis] = {}
    sentences = torch.arange(len(limits))
    tokens = torch.empty(len(limits), 0, dtype=torch.int64)  # (A, T): A sentences still open
    scores = torch.empty(len(limits), 0, dtype=torch.float64)
    latest = torch.full((len(limits),), bos, device=device)
    while len(sentences):
        value, token = best_tokens(stepper.step(latest), 1, forbidden)  # (A, 1)
        possible = value[:, 0] > -torch.inf
        ended = possible & (token[:, 0] == eos)
        cut = ~ended & (~possible | (limits[sentences] <= tokens.size(1)))
        grown, grown_scores = torch.cat([tokens, token], dim=1), torch.cat([scores, value], dim=1)
        for row in (ended | cut).nonzero().flatten().tolist():
            end = bool(ended[row])
            sequence, parts = (grown[row], grown_scores[row]) if end else (tokens[row], scores[row])
            results[int(sentences[row])] = make_hypothesis(
                sequence, parts, ended=end, length_penalty=length_penalty
            )
        going = (~(ended | cut)).nonzero().flatten()
        if 0 < len(going) < len(sentences):
            stepper.select(going.to(device))
        sentences, tokens, scores = sentences[going], grown[going], grown_scores[going]
        latest = tokens[:, -1].to(device)
    return [results[sentence] for sentence in range(len(limits))]
