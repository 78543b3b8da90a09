"""Choose the score below which pairs are removed, without examples of good and bad pairs.

The scores of a corpus are a mixture of the scores of good pairs and of unrelated lines. The scores of unrelated
lines are known from the corpus with its target lines exchanged. The share of unrelated pairs follows from the
lowest scores, where there are no good pairs; pairs removed beyond that share are lost.

Shapes: N pairs of the corpus, M exchanged pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MIN_SCORES = 50  # scores that must be below a threshold for its share to be known
_MIN_EXCHANGED_SHARE = 0.4  # share of exchanged pairs below the lowest threshold
_STEPS = 400  # thresholds that are compared


def choose_threshold(scores: NDArray[np.float32], exchanged: NDArray[np.float32], loss: float) -> float:
    """Return the largest threshold below which at most the share `loss` of good pairs lies; -inf if there is none.

    `scores` are those of the pairs of the corpus (N,), `exchanged` those of pairs with exchanged targets (M,).
    """
    if len(scores) < 2 * _MIN_SCORES or len(exchanged) < 2 * _MIN_SCORES or not loss:
        return -np.inf
    ranked, unrelated = np.sort(scores), np.sort(exchanged)
    thresholds = np.quantile(unrelated, np.linspace(_MIN_EXCHANGED_SHARE, 1, _STEPS))
    below = np.searchsorted(ranked, thresholds) / len(ranked)
    noise = np.searchsorted(unrelated, thresholds) / len(unrelated)
    known = noise * len(unrelated) >= _MIN_SCORES
    share = min(1.0, float((below[known] / noise[known]).min())) if known.any() else 0.0
    lost = (below - share * noise) / max(1 - share, 1e-6)
    fitting = np.flatnonzero(lost <= loss)
    return float(thresholds[fitting[-1]]) if len(fitting) else float(np.quantile(ranked, loss))
