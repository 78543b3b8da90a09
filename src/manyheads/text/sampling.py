"""Splitting a word by chance into the pieces of a vocabulary, so that a model meets it in many forms.

The SentencePiece library does this too, but salts its generator anew in every process, and training could not go on
after an interruption as if nothing had happened. Here a split depends on the word and on the generator alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Protocol

__all__ = ["BpeSampler", "UnigramSampler", "WordSampler"]

REMEMBERED = 2**16  # words
UNKNOWN_PENALTY = 10.0  # nats below the rarest piece, as in the library


class WordSampler(Protocol):
    """Splits words by chance."""

    def draw(self, word: str, dice: Random) -> list[str]:
        """Pieces that spell the word; characters without a piece stand alone."""
        ...


class BpeSampler:
    """BPE dropout (Provilkov et al. 2020): in each step each possible merge is passed over with a probability."""

    def __init__(self, scores: Mapping[str, float], dropout: float) -> None:
        """Scores of the pieces: of two merges, the one that makes the higher is done first."""
        self.scores = scores
        self.dropout = dropout
        self.undisturbed = lru_cache(REMEMBERED)(self.merged_without_chance)

    def draw(self, word: str, dice: Random) -> list[str]:
        """Merge by chance. Most words come out as ever; how many merges go well is drawn at once."""
        good = int(math.log1p(-dice.random()) / math.log1p(-self.dropout))
        pieces = self.undisturbed(word)
        if good >= len(word) - len(pieces):
            return list(pieces)
        return self.merged(word, good, dice)

    def merged_without_chance(self, word: str) -> tuple[str, ...]:
        """What byte-pair encoding makes of a word."""
        return tuple(self.merged(word, len(word), Random(0)))

    def merged(self, word: str, good: int, dice: Random) -> list[str]:
        """Merge the characters of a word; the best merge is done in the first `good` steps, and not in the next."""
        pieces = list(word)
        for step in range(len(word)):
            candidates = sorted(self.candidates(pieces))
            if step == good:
                del candidates[:1]
            if step >= good:
                candidates = [merge for merge in candidates if dice.random() >= self.dropout]
            if not candidates:
                break
            _, place = candidates[0]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces

    def candidates(self, pieces: list[str]) -> list[tuple[float, int]]:
        """The merges that are possible, as (minus the score, place): the smallest is done first."""
        pairs = enumerate(map(str.__add__, pieces, pieces[1:]))
        return [(-self.scores[pair], place) for place, pair in pairs if pair in self.scores]


class UnigramSampler:
    """Subword sampling (Kudo 2018): a split is drawn with its probability to the power of alpha."""

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        """Scores of the pieces: their log-probabilities in nats."""
        self.scores = scores
        self.alpha = alpha
        self.longest = max(map(len, scores))
        self.unknown = min(scores.values()) - UNKNOWN_PENALTY
        self.lattice = lru_cache(REMEMBERED)(self.make_lattice)

    def draw(self, word: str, dice: Random) -> list[str]:
        """Filter forward, sample backward: from the end, draw where each piece begins."""
        lattice, end = self.lattice(word), len(word)
        pieces: list[str] = []
        while end > 0:
            starts, sums = lattice[end - 1]
            start = starts[min(bisect_right(sums, dice.random() * sums[-1]), len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def make_lattice(self, word: str) -> list[tuple[list[int], list[float]]]:
        """For each end 1, 2, ...: where a piece that ends there may begin, and running sums of their chances."""
        totals, lattice = [0.0], []  # totals: log of the weight of all splits up to each place
        for end in range(1, len(word) + 1):
            starts, weights = [], []
            for start in range(max(0, end - self.longest), end):
                score = self.scores.get(word[start:end], self.unknown if start == end - 1 else -math.inf)
                if score > -math.inf:
                    starts.append(start)
                    weights.append(totals[start] + self.alpha * score)
            highest = max(weights)
            sums = list(accumulate(math.exp(weight - highest) for weight in weights))
            totals.append(highest + math.log(sums[-1]))
            lattice.append((starts, sums))
        return lattice
