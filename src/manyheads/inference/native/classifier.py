"""A classifier of texts in C: an encoder and its head.

Shapes: G texts, T tokens of all texts, S longest text, D width, C classes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.inference.native.model import FloatArray, NativePart
from manyheads.inference.native.positions import Positions, PositionTable
from manyheads.inference.native.structs import Linear
from manyheads.inference.native.weights import PackedWeights, Precision


class NativeClassifier(NativePart):
    """A `TextClassifier` with its weights packed for the C code."""

    def __init__(
        self,
        tensors: Mapping[str, FloatArray],
        config: ModelConfig,
        sizes: tuple[int, int],
        precision: Precision,
        library: ctypes.CDLL,
    ) -> None:
        """Pack the weights; `sizes` are the numbers of tokens and classes. See `NativeModel`."""
        weights = PackedWeights(tensors, config, precision, library.panel_width(), library.panel_depth())
        super().__init__(weights, library)
        vocabulary, classes = sizes
        self.encoder = weights.encoder(vocabulary, "embedding")
        self.pooler = weights.linear("pooler", config.d_model, bias=True)
        self.output = weights.linear("output", classes, bias=True)
        learned = None
        if config.positions == "learned":
            learned = weights.take("embedding.positions.table.weight", config.max_positions, config.d_model)
        self.positions = Positions(library, config, learned, None)
        self.types: FloatArray | None = None
        if config.token_types:
            self.types = weights.take("embedding.types.weight", config.token_types, config.d_model)

    def logits(self, rows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None) -> FloatArray:
        """Return the logits of the classes (G, C): ids of texts with their marks, and types of their tokens."""
        lengths = np.array([*map(len, rows)])
        tokens = np.fromiter(chain(*rows), dtype=np.int64, count=lengths.sum())
        starts = np.concatenate([[0], lengths.cumsum()])
        position_ids = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
        table, longest = self.positions.first(int(lengths.max())), int(lengths.max())
        if self.types is not None:
            table = self.table_with_types(table, longest)
            position_ids += longest * (0 if types is None else np.fromiter(chain(*types), dtype=np.int64))
        output = np.empty((len(tokens), self.config.d_model), dtype=np.float32)
        self.encode_batch(tokens, lengths, (), position_ids, table, output)
        pooled = output[starts[:-1]]
        if self.config.pooling == "mean":
            pooled = (np.add.reduceat(output, starts[:-1], axis=0) / lengths[:, None]).astype(np.float32)
        hidden = self.apply(self.pooler, pooled)
        hidden = np.tanh(hidden) if self.config.pooler == "tanh" else np.maximum(hidden, 0)
        return self.apply(self.output, hidden)

    def table_with_types(self, table: PositionTable, longest: int) -> PositionTable:
        """Return the first S positions with the embedding of each type in turn, S rows for each type."""
        assert self.types is not None
        types = self.types[:2]
        signals = np.zeros((longest, self.config.d_model), np.float32) if table.signals is None else table.signals
        rotary = table.rotary_cos_sin
        return PositionTable(
            len(types) * longest,
            np.concatenate([signals[:longest] + row for row in types]),
            None if rotary is None else np.concatenate([rotary[:longest]] * len(types)),
        )

    def apply(self, linear: Linear, x: NDArray[np.float32]) -> FloatArray:
        """Apply a linear layer of the head: (G, D) -> (G, its outputs)."""
        x, y = np.ascontiguousarray(x), np.empty((len(x), linear.outputs), dtype=np.float32)
        quantized = np.empty(len(x) * (x.shape[1] + 32), dtype=np.float32)  # QUANTIZED_SIZE of integers.h, at least
        self.library.linear_layer(
            linear, self.encoder.format, x.ctypes.data, len(x), quantized.ctypes.data, y.ctypes.data
        )
        return y
