"""Learn IBM model 1 (Brown et al. 1993): expected links between source and target words, from sentence pairs.

Shapes: N pairs, S and T tokens of all source and target sentences, K links (every source token of a pair with every
target token of the pair), E entries (different pairs of a source word and a target word).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_LINKS = 4_000  # links of a pair; the last tokens of a longer source are left out

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def link_tokens(source_sizes: IntArray, target_sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return source token and target token of every link (K,), ordered by pair, target token, source token.

    From the sizes of sentences (N,), the tokens are numbered among those of all source (S) or target (T) sentences.
    """
    used = np.minimum(source_sizes, np.maximum(1, _MOST_LINKS // np.maximum(1, target_sizes)))
    sizes = np.repeat(used, target_sizes)  # links of each target token
    firsts = np.repeat(np.cumsum(source_sizes) - source_sizes, target_sizes) - (np.cumsum(sizes) - sizes)
    target = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(target)) + firsts[target], target


def expected_counts(
    entries: NDArray[Any], source_words: IntArray, tokens: IntArray, rounds: int, null: FloatArray | None = None
) -> FloatArray:
    """Return the expected number of links of each entry (E,), by expectation maximisation from equal probabilities.

    Args:
        entries: entry of each link (K,).
        source_words: source word of each entry (E,), as a number.
        tokens: target token of each link (K,).
        rounds: number of iterations.
        null: probability of each target token without a source word (T,); None for 0.
    """
    counts, probability = np.zeros(len(source_words)), np.ones(len(source_words))
    for step in range(rounds):
        weights = probability[entries]
        sums: FloatArray = np.bincount(tokens, weights, 0 if null is None else len(null)).astype(float)
        if null is not None:
            sums += null if step else np.ones(len(null))
        weights /= sums[tokens]
        counts = np.bincount(entries, weights, len(source_words)).astype(float)
        probability = counts / np.bincount(source_words, counts)[source_words]
    return counts
