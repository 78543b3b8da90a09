"""Perplexity as the exponent of the mean of batch means."""

import math
from collections.abc import Iterator
from functools import partial

from transformer_doctor import examine_evaluation

# Losses of the tokens of five sentences in nats.
SENTENCES = [[2.1, 1.9, 2.0, 2.2, 1.8, 2.0], [4.5, 5.0], [1.1, 1.0, 0.9, 1.2], [3.0], [2.4, 2.5, 2.6]]


def perplexity(batches: list[list[list[float]]]) -> float:
    """Return the perplexity of batches of sentences, each a list of losses."""
    batches = [[[loss for sentence in batch for loss in sentence]] for batch in batches]
    # fix: batches = [[[loss for batch in batches for sentence in batch for loss in sentence]]]
    means = [sum(losses) / len(losses) for batch in batches for losses in batch]
    return math.exp(sum(means) / len(means))


def batched(size: int) -> list[list[list[float]]]:
    """Return the sentences in batches of a size."""
    return [SENTENCES[position : position + size] for position in range(0, len(SENTENCES), size)]


def show() -> Iterator[str]:
    """Compute the perplexity of the same sentences in batches of different sizes."""
    for size in (1, 2, 3, 5):
        yield f"batches of {size}: perplexity {perplexity(batched(size)):.3f}"


report = partial(examine_evaluation, perplexity, batched(1), SENTENCES)
