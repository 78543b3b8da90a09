"""Padded batches of token ids; the only place where the target is shifted.

Shapes: B batch, S longest source, T longest target, both with begin or end symbol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ids = Sequence[int] | NDArray[np.int32]


@dataclass(frozen=True)
class TensorBatch(ABC):
    """Base of the batches of all tasks; the first field holds the token ids, one row for each text."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the batch by the name of their field."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    @property
    def examples(self) -> int:
        """Number of texts, or of pairs of texts, B."""
        return len(next(iter(self.tensors().values())))

    @abstractmethod
    def rows(self, first: int, end: int) -> Self:
        """Return a batch of the examples from `first` up to `end`, padded as little as possible."""

    def halves(self) -> list[Self]:
        """Split into two halves, each padded as little as possible; a batch of one example is not split."""
        count = self.examples
        return [self] if count < 2 else [self.rows(0, count // 2), self.rows(count // 2, count)]

    def to(self, device: torch.device) -> Self:
        """Move the batch to a device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """Copy the batch to pinned memory, from which a GPU can fetch it asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to each tensor of the batch."""
        return replace(self, **{name: change(tensor) for name, tensor in self.tensors().items()})


@dataclass(frozen=True)
class Batch(TensorBatch):
    """Inputs of a model and the tokens that it must predict.

    Attributes:
        source: (B, S) int64: tokens, end symbol, padding.
        target_in: (B, T) int64: begin symbol, tokens, padding.
        target_out: (B, T) int64: tokens, end symbol, padding; the token after each token of target_in.
        target_positions: (N,) int64: indices into the flattened (B x T) target_out where it is not padding.
        source_tokens: number of source positions without padding, end symbols counted.
        target_tokens: number of target positions without padding, end symbols counted; the loss is divided by it.
        pad: id of the padding symbol.
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    target_positions: Tensor
    source_tokens: int
    target_tokens: int
    pad: int

    @property
    def num_positions(self) -> int:
        """Number of positions of both sides, padding included."""
        return self.source.numel() + self.target_in.numel()

    def rows(self, first: int, end: int) -> Batch:
        """Return a batch of the pairs from `first` up to `end`, padded as little as possible."""
        source, target_out = self.source[first:end], self.target_out[first:end]
        source_lengths, target_lengths = ((ids != self.pad).sum(1) for ids in (source, target_out))
        source_end, target_end = int(source_lengths.max()), int(target_lengths.max())
        return Batch(
            source=source[:, :source_end],
            target_in=self.target_in[first:end, :target_end],
            target_out=target_out[:, :target_end],
            target_positions=_real_positions(target_out[:, :target_end], self.pad),
            source_tokens=int(source_lengths.sum()),
            target_tokens=int(target_lengths.sum()),
            pad=self.pad,
        )

    def twice(self) -> Batch:
        """Repeat the batch: all pairs, then all pairs again; the token counts are not doubled."""
        both = self.mapped(lambda ids: torch.cat([ids, ids]))
        positions = torch.cat([self.target_positions, self.target_positions + self.target_out.numel()])
        return replace(both, target_positions=positions)


def pad_rows(rows: Sequence[Ids], pad: int, *, first: int | None = None, last: int | None = None) -> Tensor:
    """Pad rows of ids to one tensor (B, longest), optionally with an id before and after each row."""
    before, after = int(first is not None), int(last is not None)
    longest = max(map(len, rows), default=0) + before + after
    padded = np.full((len(rows), longest), pad, dtype=np.int64)
    if first is not None:
        padded[:, 0] = first
    for number, row in enumerate(rows):
        padded[number, before : before + len(row)] = row
        if last is not None:
            padded[number, before + len(row)] = last
    return torch.from_numpy(padded)


def _real_positions(ids: Tensor, pad: int) -> Tensor:
    """Return the indices of all positions without padding: (B, T) -> (N,) int64, into the flattened B x T."""
    return (ids != pad).flatten().nonzero()[:, 0]


def make_batch(
    sources: Sequence[Ids], targets: Sequence[Ids], *, pad: int, bos: int, eos: int, given: int = 0
) -> Batch:
    """Make the tensors of teacher forcing from token ids without begin and end symbols, one row a pair.

    The first `given` tokens of each target are not predicted: they are padding in target_out.
    """
    target_out = pad_rows(targets, pad, last=eos)
    target_out[:, :given] = pad
    return Batch(
        source=pad_rows(sources, pad, last=eos),
        target_in=pad_rows(targets, pad, first=bos),
        target_out=target_out,
        target_positions=_real_positions(target_out, pad),
        source_tokens=sum(map(len, sources)) + len(sources),
        target_tokens=sum(map(len, targets)) + (1 - given) * len(targets),
        pad=pad,
    )


def blank_batch(*, pad: int, bos: int, eos: int) -> Batch:
    """Return a batch with nothing to predict: its loss and gradients are 0."""
    source, target_in, target_out = (torch.tensor([[token]]) for token in (eos, bos, pad))
    return Batch(
        source, target_in, target_out, _real_positions(target_out, pad), source_tokens=0, target_tokens=0, pad=pad
    )
