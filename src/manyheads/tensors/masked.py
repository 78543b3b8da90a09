"""Mask tokens of texts for masked language modelling (BERT: Devlin et al. 2019, section 3.1).

Shapes: B batch, S longest text with begin and end symbols, N masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tensors.pairs import Ids, TensorBatch, pad_rows

HIDDEN_SHARE = 0.15  # share of the tokens that are chosen
_MASKED_SHARE, _RANDOM_SHARE = 0.8, 0.1  # shares of chosen tokens that become the mask or a random id


class MaskedText(NamedTuple):
    """Ids of a text after masking, the positions of the masked tokens, and their original ids."""

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class MaskedTexts(TensorBatch):
    """A batch of masked texts.

    Attributes:
        ids: (B, S) int64: begin symbol, tokens, end symbol, padding.
        positions: (N,) int64: indices of the masked tokens in the flattened B x S.
        labels: (N,) int64: original ids of the masked tokens.
        source_tokens: number of positions without padding, begin and end symbols counted.
        pad: id of the padding symbol.
    """

    ids: Tensor
    positions: Tensor
    labels: Tensor
    source_tokens: int
    pad: int

    @property
    def target_tokens(self) -> int:
        """Number of masked tokens, N."""
        return len(self.labels)

    @property
    def num_positions(self) -> int:
        """Number of positions, padding included, and of predictions."""
        return self.ids.numel() + len(self.labels)

    def rows(self, first: int, end: int) -> MaskedTexts:
        """Return a batch of the texts from `first` up to `end`, padded as little as possible."""
        ids, length = self.ids[first:end], self.ids.size(1)
        lengths = (ids != self.pad).sum(1)
        longest = int(lengths.max())
        inside = (self.positions >= first * length) & (self.positions < end * length)
        positions = self.positions[inside] - first * length
        return replace(
            self,
            ids=ids[:, :longest],
            positions=positions // length * longest + positions % length,
            labels=self.labels[inside],
            source_tokens=int(lengths.sum()),
        )


def hide_tokens(
    ids: Ids, share: float, rng: np.random.Generator, *, mask: int, others: tuple[int, int]
) -> MaskedText:
    """Mask some tokens of a text, at least one: most become the mask, some another token, some are unchanged.

    The `ids` have no begin and end symbols; `others` is the range (first, end) of the ids of random replacements.
    """
    original = np.asarray(ids, np.int64)
    chosen = rng.random(len(original)) < share
    if not chosen.any():
        chosen[rng.integers(len(original))] = True
    positions = chosen.nonzero()[0]
    labels = original[positions]
    uniform = rng.random(len(positions))
    random_ids = rng.integers(*others, size=len(positions))
    masked = original.copy()
    replaced = np.where(uniform < _MASKED_SHARE + _RANDOM_SHARE, random_ids, labels)
    masked[positions] = np.where(uniform < _MASKED_SHARE, mask, replaced)
    return MaskedText(masked, positions, labels)


def make_masked(rows: Sequence[MaskedText], *, pad: int, bos: int, eos: int) -> MaskedTexts:
    """Make a batch of masked texts."""
    ids = pad_rows([row.ids.astype(np.int32) for row in rows], pad, first=bos, last=eos)
    length = ids.size(1)
    positions = np.concatenate([row.positions + 1 + number * length for number, row in enumerate(rows)])
    labels = np.concatenate([row.labels for row in rows])
    tokens = sum(len(row.ids) + 2 for row in rows)
    return MaskedTexts(ids, torch.from_numpy(positions), torch.from_numpy(labels), tokens, pad)


def blank_masked(*, pad: int, bos: int, eos: int) -> MaskedTexts:
    """Return a batch without masked tokens: its loss and gradients are 0."""
    nothing = torch.zeros(0, dtype=torch.int64)
    return MaskedTexts(torch.tensor([[bos, eos]]), nothing, nothing, 0, pad)
