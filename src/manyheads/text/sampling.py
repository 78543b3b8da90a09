"""Sample segmentations of words into subword pieces (subword regularisation).

The SentencePiece library also samples segmentations, but seeds its generator differently in every process, so that
a training could not be resumed exactly. Here a segmentation depends on the word and the generator alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Protocol

_CACHED_WORDS = 2**16
_UNKNOWN_PENALTY = 10.0  # nats below the rarest piece, as in the library


class WordSampler(Protocol):
    """Sample segmentations of words."""

    def draw(self, word: str, rng: Random) -> list[str]:
        """Sample the pieces of a word; characters without a piece are pieces by themselves."""
        ...


class BpeSampler:
    """BPE dropout (Provilkov et al. 2020): in each step each possible merge is skipped with a probability."""

    def __init__(self, scores: Mapping[str, float], dropout: float) -> None:
        """Store the scores of the pieces; the merge to the piece with the higher score comes first."""
        self.scores = scores
        self.dropout = dropout
        self.merge_cached = lru_cache(_CACHED_WORDS)(self.merge_all)

    def draw(self, word: str, rng: Random) -> list[str]:
        """Sample the merges of a word; the number of merges before the first skipped one is drawn at once."""
        good = int(math.log1p(-rng.random()) / math.log1p(-self.dropout))
        pieces = self.merge_cached(word)
        if good >= len(word) - len(pieces):
            return list(pieces)
        return self.merged(word, good, rng)

    def merge_all(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word without dropout."""
        return tuple(self.merged(word, len(word), Random(0)))

    def merged(self, word: str, good: int, rng: Random) -> list[str]:
        """Merge the characters of a word: the best merge in the first `good` steps, but not in the next step."""
        pieces = list(word)
        for step in range(len(word)):
            candidates = sorted(self.candidates(pieces))
            if step == good:
                del candidates[:1]
            if step >= good:
                candidates = [merge for merge in candidates if rng.random() >= self.dropout]
            if not candidates:
                break
            _, index = candidates[0]
            pieces[index : index + 2] = [pieces[index] + pieces[index + 1]]
        return pieces

    def steps(self, word: str) -> Iterator[str]:
        """Yield the piece that each merge of a word makes, without dropout."""
        pieces = list(word)
        while candidates := self.candidates(pieces):
            _, index = min(candidates)
            pieces[index : index + 2] = [pieces[index] + pieces[index + 1]]
            yield pieces[index]

    def candidates(self, pieces: list[str]) -> list[tuple[float, int]]:
        """Return the possible merges as (-score, index); the smallest is the best."""
        pairs = enumerate(map(str.__add__, pieces, pieces[1:]))
        return [(-self.scores[pair], index) for index, pair in pairs if pair in self.scores]


class UnigramSampler:
    """Subword regularisation (Kudo 2018): a segmentation is drawn with its probability to the power of alpha."""

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        """Store the scores of the pieces: log-probabilities in nats."""
        self.scores = scores
        self.alpha = alpha
        self.longest = max(map(len, scores))
        self.unknown = min(scores.values()) - _UNKNOWN_PENALTY
        self.lattice = lru_cache(_CACHED_WORDS)(self.make_lattice)

    def draw(self, word: str, rng: Random) -> list[str]:
        """Sample by forward filtering and backward sampling: from the end, draw the start of each piece."""
        lattice, end = self.lattice(word), len(word)
        pieces: list[str] = []
        while end > 0:
            starts, sums = lattice[end - 1]
            start = starts[min(bisect_right(sums, rng.random() * sums[-1]), len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def make_lattice(self, word: str) -> list[tuple[list[int], list[float]]]:
        """Return, for each end 1, 2, ..., the starts of the pieces that end there, and their cumulative weights."""
        totals, lattice = [0.0], []  # totals: log of the weight of all splits up to each position
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
