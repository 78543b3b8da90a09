"""Divide pairs into the batches of updates: similar lengths together, in a seeded order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from manyheads.former_names import former_names

__getattr__ = former_names(__name__, {"fixed_batches": "data.batches"})

Indices = NDArray[np.int64]

_SECTION = 2**20  # pairs that are planned at once; only the needed sections of a larger corpus are planned


class Sampler:
    """Draw the updates of any epoch from the seed and the number of the epoch alone.

    Pairs are shuffled, then halved recursively at the weighted median length of the side that would need more
    padding, until each part is about one update. So all updates have nearly the same number of tokens, the rows of
    an update have nearly equal lengths, and ties fall differently in each epoch. Then the updates are shuffled.
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
        """Prepare the data that all epochs share.

        Args:
            source_lengths: number of tokens of each pair, begin and end symbols counted (N,).
            target_lengths: the same for the target (N,).
            batch_tokens: number of target tokens an update.
            batch_sentences: number of pairs an update, in place of batch_tokens.
            seed: seed of the order.
            rates: mean occurrences of each pair in an epoch (N,), default 1; with 0.5 about half of the pairs
                occur, different pairs in each epoch.
        """
        self.by_tokens = batch_sentences is None
        self.set_lengths(source_lengths, target_lengths)
        self.rates = rates
        total, fewest = int(self.weights.sum()), len(self.weights)
        if rates is not None:
            total = math.ceil(float(self.weights @ rates))
            fewest = int(rates.sum() - 3 * math.sqrt(len(rates)))  # six standard deviations: never fewer pairs
        number = math.ceil(total / (batch_sentences or batch_tokens))
        self.number = max(1, min(number, fewest))
        self.seed = seed

    def set_lengths(self, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> None:
        """Set the number of tokens of each pair, begin and end symbols counted: two arrays (N,)."""
        self.lengths = (source_lengths.astype(np.int32), target_lengths.astype(np.int32))
        self.weights = self.lengths[1] if self.by_tokens else np.ones_like(self.lengths[1])

    def with_lengths(self, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> Sampler:
        """Return a sampler of the same pairs with other lengths, and the same number of updates."""
        sampler = copy(self)
        sampler.set_lengths(source_lengths, target_lengths)
        return sampler

    def epoch(self, number: int, most: int | None = None) -> EpochPlan:
        """Return the updates of one epoch in order, at most `most`, each an array of pair indices."""
        return EpochPlan(self, number, self.number if most is None else min(most, self.number))

    def drawn(self, generator: np.random.Generator) -> Indices:
        """Draw the pairs of an epoch, shuffled, each as often as its rate requires."""
        if self.rates is None:
            return generator.permutation(len(self.weights))
        repeats = np.floor(self.rates)
        repeats += generator.random(len(repeats)) < self.rates - repeats
        if not repeats.any():
            repeats[self.rates.argmax()] = 1  # an update needs a pair
        return generator.permutation(np.repeat(np.arange(len(repeats)), repeats.astype(np.int64)))

    def halved(self, pairs: Indices, parts: int) -> list[Indices]:
        """Divide pairs into `parts` parts of about equal weight, with similar lengths in each part."""
        if parts <= 1:
            return [pairs]
        costlier = max(self.lengths, key=lambda lengths: _padding(lengths[pairs]))
        pairs = pairs[np.argsort(costlier[pairs], kind="stable")]
        weights = self.weights[pairs]
        filled = np.cumsum(weights)
        middle = int(np.searchsorted(filled - weights / 2, filled[-1] * (parts // 2) / parts))  # nearest index
        middle = min(max(middle, parts // 2), len(pairs) - (parts - parts // 2))  # at least a pair for each part
        return self.halved(pairs[:middle], parts // 2) + self.halved(pairs[middle:], parts - parts // 2)


class EpochPlan(Sequence[Indices]):
    """The updates of an epoch; for a large corpus only the requested section is computed."""

    def __init__(self, sampler: Sampler, number: int, count: int) -> None:
        self.sampler = sampler
        self.number = number
        self.updates = count
        self.pairs = sampler.drawn(np.random.default_rng((sampler.seed, number)))
        sections = min(math.ceil(len(sampler.weights) / _SECTION), sampler.number)
        self.ends = np.linspace(0, len(self.pairs), sections + 1).astype(np.int64)  # borders of sections, in pairs
        self.firsts = np.linspace(0, sampler.number, sections + 1).astype(np.int64)  # likewise, in updates
        self.section = lru_cache(2)(self.make_section)  # two: the next section is prepared ahead of its use

    def __len__(self) -> int:
        return self.updates

    @overload
    def __getitem__(self, index: int) -> Indices: ...
    @overload
    def __getitem__(self, index: slice) -> list[Indices]: ...
    def __getitem__(self, index: int | slice) -> Indices | list[Indices]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        section = int(np.searchsorted(self.firsts, index, side="right")) - 1
        return self.section(section)[index - int(self.firsts[section])]

    def make_section(self, number: int) -> list[Indices]:
        """Return the updates of one section, shuffled."""
        sampler = self.sampler
        pairs = self.pairs[self.ends[number] : self.ends[number + 1]]
        updates = sampler.halved(pairs, int(self.firsts[number + 1] - self.firsts[number]))
        order = np.random.default_rng((sampler.seed, self.number, number)).permutation(len(updates))
        return [updates[position] for position in order]

    def heaviest(self) -> int:
        """Return the index of the update with the most positions, padding included.

        Only the first section of a large corpus is searched.
        """

        def positions(pairs: Indices) -> int:
            return len(pairs) * sum(int(lengths[pairs].max()) for lengths in self.sampler.lengths)

        return int(np.argmax([positions(pairs) for pairs in self.section(0)[: self.updates]]))


def _padding(lengths: NDArray[Any]) -> int:
    """Return the number of padding positions if these rows are padded to the longest."""
    return int(lengths.max()) * len(lengths) - int(lengths.sum())


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` indices from 0 to count - 1, evenly spaced."""
    return sorted({number * count // most for number in range(most)}) if count else []
