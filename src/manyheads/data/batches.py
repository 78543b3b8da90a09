"""Batches of rows of similar length, for validation and decoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def fixed_batches(lengths: NDArray[np.int64], batch_tokens: int) -> list[Indices]:
    """Make batches by decreasing length, with a token budget that includes padding, for validation and decoding."""
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        rows = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + rows])
        start += rows
    return batches
