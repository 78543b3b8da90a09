"""The positions that the C code reads: sinusoidal, learned or rotary, computed once for the first N positions.

Shapes: N positions, D model width, E head dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.errors import UsageError

FloatArray = NDArray[np.float32]
_MIN_PRECOMPUTED_POSITIONS = 64


@dataclass(frozen=True)
class PositionTable:
    """The precomputed positions 0 to N - 1.

    Attributes:
        count: N.
        signals: (N, D) added to the embeddings; None if nothing is added.
        rotary_cos_sin: (N, E / 2, 2) cosines and sines that rotate queries and keys; None if not rotary.
    """

    count: int
    signals: FloatArray | None
    rotary_cos_sin: FloatArray | None


class Positions:
    """The positions of the source or of the target; computed as in `manyheads.model.positions`."""

    def __init__(self, config: ModelConfig, learned: FloatArray | None, token_type: FloatArray | None) -> None:
        """Take the learned positions (max_positions, D) and the embedding of token type 0 (D,), if any."""
        self.config = config
        self.learned = learned
        self.token_type = token_type
        self.table = self.compute(_MIN_PRECOMPUTED_POSITIONS)

    def first(self, count: int) -> PositionTable:
        """Return a table of at least `count` positions.

        Raises:
            UsageError: the model has fewer learned positions.
        """
        table = self.table  # another thread may replace self.table
        if count > table.count:
            if self.learned is not None and count > len(self.learned):
                raise UsageError(
                    f"an input of {count} tokens is longer than model.max_positions = {len(self.learned)}, the "
                    "limit of this model's learned positions. Split the text into sentences, or train with more."
                )
            table = self.table = self.compute(2 * count)
        return table

    def compute(self, count: int) -> PositionTable:
        """Compute the first `count` positions, or all learned ones if there are fewer."""
        if self.config.positions == "rotary":
            signals, rotary = None, _rotary_cos_sin(count, self.config.d_model // self.config.num_heads)
        else:
            signals = _sinusoids(count, self.config.d_model) if self.learned is None else self.learned[:count]
            rotary, count = None, len(signals)
        if self.token_type is not None:
            zeros = np.zeros((count, self.config.d_model), dtype=np.float32)
            signals = self.token_type + (zeros if signals is None else signals)
        return PositionTable(count, None if signals is None else np.ascontiguousarray(signals), rotary)


def _sinusoids(count: int, width: int) -> FloatArray:
    """Return the sinusoidal positions of section 3.5, computed in float64: -> (count, width)."""
    frequencies = np.exp(np.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = np.arange(float(count))[:, None] * frequencies
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(count, width).astype(np.float32)


def _rotary_cos_sin(count: int, head_dim: int) -> FloatArray:
    """Return the cosines and sines of rotary positions: -> (count, head_dim / 2, 2).

    A complex exponential takes both from the C library, as torch does; NumPy's sines differ in the last bits.
    """
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) * np.float32(-math.log(10_000.0) / head_dim)
    frequencies = np.exp(exponents.astype(np.float64)).astype(np.float32)
    angles = np.zeros((count, head_dim // 2), dtype=np.complex64)
    angles.imag = np.arange(count, dtype=np.float32)[:, None] * frequencies
    return np.exp(angles).view(np.float32).reshape(count, -1, 2)
