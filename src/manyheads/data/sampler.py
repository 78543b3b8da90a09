"""Which pairs make up each update: like lengths together, in a seeded order that needs no memory of the past."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["EpochPlan", "Sampler", "fixed_batches", "padding_share"]

Indices = NDArray[np.int64]

SECTION = 2**20  # pairs that are planned at once; of a larger corpus only the sections that are needed


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
        rates: NDArray[np.float64] | None = None,
    ) -> None:
        """Lay out what all epochs have in common.

        Args:
            source_lengths: tokens of each pair, marks counted (N,).
            target_lengths: likewise.
            batch_tokens: target tokens an update.
            batch_sentences: pairs an update, instead.
            seed: of the order.
            rates: how often each pair comes in an epoch (N,), once unless given; of 0.5, every other pair comes,
                in each epoch others.
        """
        self.lengths = (source_lengths.astype(np.int32), target_lengths.astype(np.int32))
        self.weights = self.lengths[1] if batch_sentences is None else np.ones_like(self.lengths[1])
        self.rates = rates
        total, fewest = int(self.weights.sum()), len(self.weights)
        if rates is not None:
            total = math.ceil(float(self.weights @ rates))
            fewest = int(rates.sum() - 3 * math.sqrt(len(rates)))  # six deviations: never fewer in an epoch
        number = math.ceil(total / (batch_sentences or batch_tokens))
        self.number = max(1, min(number, fewest))
        self.seed = seed

    def epoch(self, number: int) -> EpochPlan:
        """The updates of one epoch in order, each an array of pair numbers."""
        return EpochPlan(self, number)

    def drawn(self, generator: np.random.Generator) -> Indices:
        """The pairs of an epoch, shuffled, as often as each comes."""
        if self.rates is None:
            return generator.permutation(len(self.weights))
        often = np.floor(self.rates)
        often += generator.random(len(often)) < self.rates - often
        if not often.any():
            often[self.rates.argmax()] = 1  # an update needs a pair
        return generator.permutation(np.repeat(np.arange(len(often)), often.astype(np.int64)))

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


class EpochPlan(Sequence[Indices]):
    """The updates of an epoch; of a large corpus only the section that is asked for is worked out."""

    def __init__(self, sampler: Sampler, number: int) -> None:
        self.sampler = sampler
        self.number = number
        self.pairs = sampler.drawn(np.random.default_rng((sampler.seed, number)))
        sections = min(math.ceil(len(sampler.weights) / SECTION), sampler.number)
        self.ends = np.linspace(0, len(self.pairs), sections + 1).astype(np.int64)  # of sections, in pairs
        self.firsts = np.linspace(0, sampler.number, sections + 1).astype(np.int64)  # of sections, in updates
        self.section = lru_cache(2)(self.make_section)  # two: at its end the next one is made ahead

    def __len__(self) -> int:
        return self.sampler.number

    @overload
    def __getitem__(self, place: int) -> Indices: ...
    @overload
    def __getitem__(self, place: slice) -> list[Indices]: ...
    def __getitem__(self, place: int | slice) -> Indices | list[Indices]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        which = int(np.searchsorted(self.firsts, place, side="right")) - 1
        return self.section(which)[place - int(self.firsts[which])]

    def make_section(self, which: int) -> list[Indices]:
        """The updates of one section, shuffled."""
        sampler = self.sampler
        pairs = self.pairs[self.ends[which] : self.ends[which + 1]]
        updates = sampler.halved(pairs, int(self.firsts[which + 1] - self.firsts[which]))
        order = np.random.default_rng((sampler.seed, self.number, which)).permutation(len(updates))
        return [updates[place] for place in order]

    def heaviest(self, padded: Callable[[int], int] = int) -> int:
        """The place of the update with the most positions, padding counted; of a large corpus, in a section.

        Args:
            padded: how long a side becomes whose longest row has that many tokens.
        """

        def places(pairs: Indices) -> int:
            return len(pairs) * sum(padded(int(lengths[pairs].max())) for lengths in self.sampler.lengths)

        return int(np.argmax([places(pairs) for pairs in self.section(0)]))


def padding(lengths: NDArray[Any]) -> int:
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


def padding_share(lengths: NDArray[np.int64], batches: Sequence[Indices]) -> float:
    """Share of padded positions when these batches are padded to their longest row, 0 to 1."""
    padded = sum(padding(lengths[batch]) for batch in batches)
    return padded / (padded + sum(int(lengths[batch].sum()) for batch in batches))
