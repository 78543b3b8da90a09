"""The positions that the C code reads: sinusoidal, learned or rotary, computed once for the first N positions.

`elementary.h` computes them, to the same bits on every processor; NumPy's sines differ in the last bits.

Shapes: N positions, D model width, E head dimension.
"""

from __future__ import annotations

import ctypes
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

    def __init__(
        self,
        library: ctypes.CDLL,
        config: ModelConfig,
        learned: FloatArray | None,
        token_type: FloatArray | None,
    ) -> None:
        """Take the learned positions (max_positions, D) and the embedding of token type 0 (D,), if any."""
        self.library = library
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
        signals, rotary, width = None, None, self.config.d_model
        if self.config.positions == "rotary":
            rotary = np.empty((count, width // self.config.num_heads // 2, 2), dtype=np.float32)
            self.library.rotary_positions(count, 2 * rotary.shape[1], rotary.ctypes.data)
        elif self.learned is None:
            signals = np.empty((count, width), dtype=np.float32)
            self.library.sinusoidal_positions(count, width, signals.ctypes.data)
        else:
            signals = self.learned[:count]
            count = len(signals)
        if self.token_type is not None:
            zeros = np.zeros((count, self.config.d_model), dtype=np.float32)
            signals = self.token_type + (zeros if signals is None else signals)
        return PositionTable(count, None if signals is None else np.ascontiguousarray(signals), rotary)
