"""Keys and values of the past, so that decoding computes each token once.

Shapes: R rows (hypotheses in progress), H heads, E head width, T tokens so far.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["KeyValueCache"]

FIRST_CAPACITY = 16  # tokens; doubled whenever it is full


class KeyValueCache:
    """The self-attention past of one decoder layer; grows by doubling, so that a step copies only itself."""

    def __init__(self) -> None:
        self.length = 0
        self.keys: Tensor | None = None  # (R, H, capacity, E); the first `length` are filled
        self.values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add new tokens and return the whole past, them included: twice (R, H, t, E) -> twice (R, H, T, E)."""
        end = self.length + keys.size(2)
        self.keys = self.with_room(self.keys, keys, end)
        self.values = self.with_room(self.values, values, end)
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def with_room(self, buffer: Tensor | None, new: Tensor, end: int) -> Tensor:
        """The buffer, moved to a larger one when `end` tokens do not fit: (R, H, >= end, E)."""
        if buffer is not None and end <= buffer.size(2):
            return buffer
        rows, heads, _, width = new.shape
        capacity = max(FIRST_CAPACITY, end if buffer is None else 2 * end)
        larger = new.new_empty(rows, heads, capacity, width)
        if buffer is not None:
            larger[:, :, : self.length] = buffer[:, :, : self.length]
        return larger

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R',) indices."""
        if self.keys is not None and self.values is not None:
            self.keys = self.reordered(self.keys, rows)
            self.values = self.reordered(self.values, rows)

    def reordered(self, buffer: Tensor, rows: Tensor) -> Tensor:
        """A buffer of the chosen rows with the same capacity: (R, H, C, E) -> (R', H, C, E)."""
        chosen = torch.index_select(buffer[:, :, : self.length], 0, rows)
        larger = buffer.new_empty(chosen.size(0), *buffer.shape[1:])
        larger[:, :, : self.length] = chosen
        return larger
