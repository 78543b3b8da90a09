"""Outputs written token by token without looking back; greedy search takes the most likely token at every step.

Shapes: B sentences, of which A are still open; V vocabulary. All state is on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
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
    limits = check_limits(max_lengths).numpy()
    outputs: dict[int, Hypothesis] = {}
    sentences = np.arange(len(limits))
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    latest = torch.full((len(limits),), bos, device=device)
    while len(sentences):
        token, value = (part.numpy() for part in choose(stepper.step(latest), torch.from_numpy(sentences)))
        possible = value > -np.inf
        ended = possible & (token == eos)
        going = possible & ~ended & (limits[sentences] > [len(tokens[number]) for number in sentences.tolist()])
        for row, number in enumerate(sentences.tolist()):
            if going[row] or ended[row]:
                tokens[number].append(int(token[row]))
                scores[number].append(float(value[row]))
            if not going[row]:
                outputs[number] = make_hypothesis(
                    tokens[number], scores[number], ended=bool(ended[row]), length_penalty=length_penalty
                )
        rows = going.nonzero()[0]
        token, sentences = token[rows], sentences[rows]
        yield sentences.tolist(), token.tolist()
        if 0 < len(rows) < len(going):
            stepper.select(torch.from_numpy(rows).to(device))
        latest = torch.from_numpy(token).to(device)
    return [outputs[sentence] for sentence in range(len(limits))]


def results(steps: Steps) -> list[Hypothesis]:
    """Go through all steps; return the outputs."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outputs: list[Hypothesis] = end.value
            return outputs
