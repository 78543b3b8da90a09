"""Padded batches of token ids; the only place where the target is shifted.

Shapes: B batch, S longest source, T longest target, both with begin or end symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["Batch", "blank_batch", "make_batch", "next_length", "pad_rows", "real_places"]

Ids = Sequence[int] | NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Inputs of a model and the tokens that it must predict.

    Attributes:
        source: (B, S) int64: tokens, end symbol, padding.
        target_in: (B, T) int64: begin symbol, tokens, padding.
        target_out: (B, T) int64: tokens, end symbol, padding; the token after each token of target_in.
        target_places: (N,) int64: indices into the flattened (B x T) target_out where it is not padding.
        source_tokens: number of source positions without padding, end symbols counted.
        target_tokens: number of target positions without padding, end symbols counted; the loss is divided by it.
        pad: id of the padding symbol.
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    target_places: Tensor
    source_tokens: int
    target_tokens: int
    pad: int

    @property
    def examples(self) -> int:
        """Number of pairs, B."""
        return len(self.source)

    @property
    def places(self) -> int:
        """Number of positions of both sides, padding included."""
        return self.source.numel() + self.target_in.numel()

    @property
    def shape(self) -> tuple[bool, int, int]:
        """Key of the shapes that torch.compile makes code for: whether B > 1, S, T."""
        return len(self.source) > 1, self.source.size(1), self.target_in.size(1)

    def halves(self) -> list[Batch]:
        """Split into two halves, each padded as little as possible; one pair stays whole."""
        if len(self.source) < 2:
            return [self]
        middle = len(self.source) // 2
        return [self.rows(slice(None, middle)), self.rows(slice(middle, None))]

    def rows(self, rows: slice) -> Batch:
        """Return a batch of some of the pairs."""
        source, target_out = self.source[rows], self.target_out[rows]
        source_lengths, target_lengths = ((ids != self.pad).sum(1) for ids in (source, target_out))
        source_end, target_end = int(source_lengths.max()), int(target_lengths.max())
        return Batch(
            source=source[:, :source_end],
            target_in=self.target_in[rows, :target_end],
            target_out=target_out[:, :target_end],
            target_places=real_places(target_out[:, :target_end], self.pad),
            source_tokens=int(source_lengths.sum()),
            target_tokens=int(target_lengths.sum()),
            pad=self.pad,
        )

    def twice(self) -> Batch:
        """Repeat the batch: all pairs, then all pairs again; the token counts stay those of one copy."""
        both = self.mapped(lambda ids: torch.cat([ids, ids]))
        places = torch.cat([self.target_places, self.target_places + self.target_out.numel()])
        return replace(both, target_places=places)

    def padded(self, limit: int) -> Batch:
        """Pad each side to `next_length` of its length, at most to `limit`."""
        length = self.target_out.size(1)
        source, target = (
            max(0, min(next_length(ids.size(1)), limit) - ids.size(1)) for ids in (self.source, self.target_out)
        )
        return replace(
            self,
            source=functional.pad(self.source, (0, source), value=self.pad),
            target_in=functional.pad(self.target_in, (0, target), value=self.pad),
            target_out=functional.pad(self.target_out, (0, target), value=self.pad),
            target_places=self.target_places + self.target_places // length * target,
        )

    def to(self, device: torch.device) -> Batch:
        """Move the batch to a device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> Batch:
        """Copy the batch to pinned memory, from which a GPU can fetch it asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """Apply a function to each tensor of the batch."""
        return replace(
            self,
            source=change(self.source),
            target_in=change(self.target_in),
            target_out=change(self.target_out),
            target_places=change(self.target_places),
        )


def next_length(length: int) -> int:
    """Round a length up to 8, 12, 16, 24, 32, 48, 64, 96, ...: few shapes, little padding."""
    power = max(8, 1 << (length - 1).bit_length())
    between = power * 3 // 4
    return between if 8 < length <= between else power


def pad_rows(rows: Sequence[Ids], pad: int, *, first: int | None = None, last: int | None = None) -> Tensor:
    """Pad rows of ids to one tensor (B, longest), optionally with an id before and after each row."""
    before, after = int(first is not None), int(last is not None)
    longest = max(map(len, rows), default=0) + before + after
    padded = np.full((len(rows), longest), pad, dtype=np.int64)
    if first is not None:
        padded[:, 0] = first
    for place, row in enumerate(rows):
        padded[place, before : before + len(row)] = row
        if last is not None:
            padded[place, before + len(row)] = last
    return torch.from_numpy(padded)


def real_places(ids: Tensor, pad: int) -> Tensor:
    """Return the indices of all positions without padding: (B, T) -> (N,) int64, into the flattened B x T."""
    return (ids != pad).flatten().nonzero()[:, 0]


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids], *, pad: int, bos: int, eos: int) -> Batch:
    """Make the tensors of teacher forcing from token ids without begin and end symbols, one row a pair."""
    target_out = pad_rows(targets, pad, last=eos)
    return Batch(
        source=pad_rows(sources, pad, last=eos),
        target_in=pad_rows(targets, pad, first=bos),
        target_out=target_out,
        target_places=real_places(target_out, pad),
        source_tokens=sum(map(len, sources)) + len(sources),
        target_tokens=sum(map(len, targets)) + len(targets),
        pad=pad,
    )


def blank_batch(*, pad: int, bos: int, eos: int) -> Batch:
    """Return a batch with nothing to predict: its loss and gradients are 0."""
    source, target_in, target_out = (torch.tensor([[token]]) for token in (eos, bos, pad))
    return Batch(
        source, target_in, target_out, real_places(target_out, pad), source_tokens=0, target_tokens=0, pad=pad
    )
