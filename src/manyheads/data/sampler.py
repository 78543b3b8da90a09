"""Which pairs make up each update: like lengths together, in a seeded order that needs no memory of the past."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sampler", "fixed_batches", "padding_share"]

Indices = NDArray[np.int64]


class Sampler:
    """The updates of any epoch, as a function of the seed and the epoch's number alone.

    Pairs are shuffled and then halved again and again at the weighted median of whichever side's length would
    cost more padding, until each part is about one update. So all updates weigh nearly the same, both sides of
    an update are nearly equal in length, and ties fall differently in each epoch. The updates are then shuffled.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.int64],
        target_lengths: NDArray[np.int64],
        *,
        batch_tokens: int,
        batch_sentences: int | None = None,
        seed: int = 1,
    ) -> None:
        """Lengths in tokens (N,), marks counted; the budget is target tokens, or pairs when that is given."""
        self.lengths = (source_lengths, target_lengths)
        self.weights = target_lengths if batch_sentences is None else np.ones_like(target_lengths)
        self.number = math.ceil(int(self.weights.sum()) / (batch_sentences or batch_tokens))
        self.number = min(self.number, len(target_lengths))
        self.seed = seed

    def epoch(self, number: int) -> list[Indices]:
        """The updates of one epoch in order, each an array of pair numbers."""
        generator = np.random.default_rng((self.seed, number))
        batches = self.halved(generator.permutation(len(self.weights)), self.number)
        return [batches[place] for place in generator.permutation(len(batches))]

    def halved(self, pairs: Indices, parts: int) -> list[Indices]:
        """Cut pairs into that many parts of about equal weight, alike in both lengths."""
        if parts <= 1:
            return [pairs]
        costlier = max(self.lengths, key=lambda lengths: padding(lengths[pairs]))
        pairs = pairs[np.argsort(costlier[pairs], kind="stable")]
        weights = self.weights[pairs]
        filled = np.cumsum(weights)
        middle = int(np.searchsorted(filled - weights / 2, filled[-1] * (parts // 2) / parts))  # the nearest
        middle = min(max(middle, parts // 2), len(pairs) - (parts - parts // 2))  # a pair for each part
        return self.halved(pairs[:middle], parts // 2) + self.halved(pairs[middle:], parts - parts // 2)


def padding(lengths: Indices) -> int:
    """Padded places when these rows are padded to the longest."""
    return int(lengths.max()) * len(lengths) - int(lengths.sum())


def fixed_batches(lengths: NDArray[np.int64], batch_tokens: int) -> list[Indices]:
    """Batches in the order of falling length, padding counted within the budget: for validation and decoding."""
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        rows = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + rows])
        start += rows
    return batches


def padding_share(lengths: NDArray[np.int64], batches: list[Indices]) -> float:
    """Share of padded positions when these batches are padded to their longest row, 0 to 1."""
    padded = sum(padding(lengths[batch]) for batch in batches)
    return padded / (padded + sum(int(lengths[batch].sum()) for batch in batches))
