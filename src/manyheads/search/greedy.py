"""Outputs written token by token without looking back; greedy search takes the most likely token at every step.

Shapes: B sentences, of which A are still open; V vocabulary, T tokens so far.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import torch
from torch import Tensor

from manyheads.search.candidates import best_tokens, check_limits, make_hypothesis
from manyheads.search.interface import Hypothesis, Stepper

__all__ = ["Choose", "Steps", "follow", "greedy_choice", "greedy_search", "results"]

# Log-probabilities (A, V) and the numbers (A,) of the open sentences -> each one's next token (A,) and its
# log-probability (A,), float64, -inf where nothing can follow; both on the CPU.
Choose = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

# At each step the sentences that go on and the tokens they go on with; in the end the output of every sentence.
Steps = Generator[tuple[list[int], list[int]], None, list[Hypothesis]]


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
        ValueError: a limit is negative.
        FloatingPointError: the model gave log-probabilities that are not numbers.
    """
    choose = greedy_choice(forbidden)
    return results(
        follow(stepper, choose, max_lengths=max_lengths, bos=bos, eos=eos, length_penalty=length_penalty)
    )


def greedy_choice(forbidden: Sequence[int]) -> Choose:
    """The choice of the most likely token that is not forbidden."""

    def choose(log_probs: Tensor, sentences: Tensor) -> tuple[Tensor, Tensor]:
        values, ids = best_tokens(log_probs, 1, forbidden)
        return ids[:, 0], values[:, 0]

    return choose


@torch.no_grad()
def follow(
    stepper: Stepper, choose: Choose, *, max_lengths: Tensor, bos: int, eos: int, length_penalty: float
) -> Steps:
    """Write every sentence with the tokens that `choose` names, a step at a time; arguments as `greedy_search`."""
    device = max_lengths.device
    limits = check_limits(max_lengths)
    outputs: dict[int, Hypothesis] = {}
    sentences = torch.arange(len(limits))
    tokens = torch.empty(len(limits), 0, dtype=torch.int64)  # (A, T)
    scores = torch.empty(len(limits), 0, dtype=torch.float64)
    latest = torch.full((len(limits),), bos, device=device)
    while len(sentences):
        token, value = choose(stepper.step(latest), sentences)
        possible = value > -torch.inf
        ended = possible & (token == eos)
        cut = ~ended & (~possible | (limits[sentences] <= tokens.size(1)))
        grown, grown_scores = torch.cat([tokens, token[:, None]], 1), torch.cat([scores, value[:, None]], 1)
        for row in (ended | cut).nonzero().flatten().tolist():
            end = bool(ended[row])
            sequence, parts = (grown[row], grown_scores[row]) if end else (tokens[row], scores[row])
            outputs[int(sentences[row])] = make_hypothesis(
                sequence, parts, ended=end, length_penalty=length_penalty
            )
        going = (~(ended | cut)).nonzero().flatten()
        yield sentences[going].tolist(), token[going].tolist()
        if 0 < len(going) < len(sentences):
            stepper.select(going.to(device))
        sentences, tokens, scores = sentences[going], grown[going], grown_scores[going]
        latest = tokens[:, -1].to(device)
    return [outputs[sentence] for sentence in range(len(limits))]


def results(steps: Steps) -> list[Hypothesis]:
    """Go through all steps; return the outputs."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outputs: list[Hypothesis] = end.value
            return outputs
