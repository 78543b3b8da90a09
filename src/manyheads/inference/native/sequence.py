"""Sequences of tokens with a KV cache in C, into which several tokens are read in one call (teacher forcing).

Shapes: T tokens of a call, L decoder layers, H heads, E head dimension, S source length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.inference.native.model import NativePart, address, pointers
from manyheads.inference.native.structs import Heads, Step

_FloatArray = NDArray[np.float32]
_TOKENS_PER_CALL = 32  # whose logits are in memory together


class NativeSequence:
    """A sequence of tokens and its KV cache.

    Attributes:
        length: number of tokens in the cache.
        cache: keys and values (L, 2, H, capacity, E).
        source: keys and values of the source, 2 L arrays (H, S, E); none for a language model.
    """

    def __init__(self, model: NativePart, capacity: int, source: Sequence[_FloatArray] = ()) -> None:
        """Start without tokens; the cache has room for `capacity`."""
        config, heads = model.config, model.config.num_heads
        self.model = model
        self.length = 0
        self.cache = np.empty(
            (config.num_decoder_layers, 2, heads, capacity, config.d_model // heads), dtype=np.float32
        )
        self.source = source
        self.pointers = pointers([array.ctypes.data for array in source])

    def steps(self, tokens: NDArray[np.int64], attention: _FloatArray | None = None) -> list[Step]:
        """Return the steps that append tokens (T,); they write their cross-attention to (T, L, H, S)."""
        table, capacity = self.model.target_positions.first(self.length + len(tokens)), self.cache.shape[3]
        longest = self.source[0].shape[1] if self.source else 0
        steps = []
        for number in range(len(tokens)):
            position = self.length
            self.length += 1
            steps.append(
                Step(
                    tokens=tokens[number:].ctypes.data,
                    position_signal=address(None if table.signals is None else table.signals[position]),
                    rotary=address(None if table.rotary_cos_sin is None else table.rotary_cos_sin[position]),
                    cache=self.cache.ctypes.data,
                    memory=self.pointers,
                    sentences=1,
                    rows=1,
                    length=self.length,
                    capacity=capacity,
                    source_length=longest,
                    source_capacity=longest,
                    shared_cache=1,
                    cross_heads=Heads(weights=address(None if attention is None else attention[number])),
                )
            )
        return steps

    def append(
        self, tokens: Sequence[int], logits: _FloatArray | None = None, attention: _FloatArray | None = None
    ) -> None:
        """Append T tokens; write their logits (T, V) and cross-attention (T, L, H, S) to the arrays, if any."""
        ids = np.array(tokens, dtype=np.int64)
        for first in range(0, len(ids), _TOKENS_PER_CALL):
            part = slice(first, first + _TOKENS_PER_CALL)
            steps = self.steps(ids[part], None if attention is None else attention[part])
            self.model.decoder_steps(steps, self.max_keys, None if logits is None else logits[part])

    @property
    def max_keys(self) -> int:
        """Maximum number of keys that a token attends to."""
        return max(self.length, self.source[0].shape[1] if self.source else 0)

    def copy(self) -> NativeSequence:
        """Return a sequence with the same tokens and a KV cache of its own."""
        copied = NativeSequence(self.model, self.cache.shape[3], self.source)
        copied.length = self.length
        copied.cache[:, :, :, : self.length] = self.cache[:, :, :, : self.length]
        return copied
