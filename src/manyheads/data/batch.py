"""The padded tensors of one update: the one place where the target is shifted.

Shapes: B batch, S longest source, T longest target, both with their mark.
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
    """What a model is fed and what it must predict.

    Attributes:
        source: (B, S) int64: tokens, end mark, padding.
        target_in: (B, T) int64: begin mark, tokens, padding.
        target_out: (B, T) int64: tokens, end mark, padding; the token after each of target_in.
        target_places: (N,) int64: where target_out is no padding, row by row, as places in its B x T.
        source_tokens: real source positions, end marks counted.
        target_tokens: real target positions, end marks counted: what the loss is divided by.
        pad: the id of padding.
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
        """How many pairs, B."""
        return len(self.source)

    @property
    def places(self) -> int:
        """Positions of both sides that are computed, padding and all."""
        return self.source.numel() + self.target_in.numel()

    @property
    def shape(self) -> tuple[bool, int, int]:
        """What code is compiled for: whether there are several rows, S, T."""
        return len(self.source) > 1, self.source.size(1), self.target_in.size(1)

    def halves(self) -> list[Batch]:
        """The first and the second half of the pairs, padded no more than they need; one pair stays as it is."""
        if len(self.source) < 2:
            return [self]
        middle = len(self.source) // 2
        return [self.rows(slice(None, middle)), self.rows(slice(middle, None))]

    def rows(self, rows: slice) -> Batch:
        """Some of the pairs."""
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
        """Every pair two times: all pairs, and all again; counts are those of once."""
        both = self.mapped(lambda ids: torch.cat([ids, ids]))
        places = torch.cat([self.target_places, self.target_places + self.target_out.numel()])
        return replace(both, target_places=places)

    def padded(self, limit: int) -> Batch:
        """The same pairs with more padding: each side as long as its `next_length`, at most `limit`."""
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
        """The same batch on another device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> Batch:
        """The same batch in memory from where a GPU fetches it while the processor goes on."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with each tensor changed."""
        return replace(
            self,
            source=change(self.source),
            target_in=change(self.target_in),
            target_out=change(self.target_out),
            target_places=change(self.target_places),
        )


def next_length(length: int) -> int:
    """The smallest of 8, 12, 16, 24, 32, 48, 64, 96, ... that is not below a length: few shapes, little padding."""
    power = max(8, 1 << (length - 1).bit_length())
    between = power * 3 // 4
    return between if 8 < length <= between else power


def pad_rows(rows: Sequence[Ids], pad: int, *, first: int | None = None, last: int | None = None) -> Tensor:
    """Rows of ids as one tensor (B, longest), an id put before and after each on request, padded at the end."""
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
    """Where a rectangle holds no padding, row by row: (B, T) -> (N,) int64, places in its B x T."""
    return (ids != pad).flatten().nonzero()[:, 0]


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids], *, pad: int, bos: int, eos: int) -> Batch:
    """Token ids without marks, one row a pair, as the tensors of teacher forcing."""
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
    """A batch without anything to predict: its loss is 0, and so are its gradients."""
    source, target_in, target_out = (torch.tensor([[token]]) for token in (eos, bos, pad))
    return Batch(
        source, target_in, target_out, real_places(target_out, pad), source_tokens=0, target_tokens=0, pad=pad
    )
