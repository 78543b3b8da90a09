"""Mask tokens of texts for masked language modelling (BERT: Devlin et al. 2019, section 3.1).

Shapes: B batch, S longest text with begin and end symbols, N masked tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from manyheads.data.batch import Ids, next_length, pad_rows

__all__ = ["MaskedText", "MaskedTexts", "blank_masked", "hide_tokens", "make_masked"]

SHOWN_AS_MASK, SHOWN_AS_OTHER = 0.8, 0.1  # of the hidden tokens; the rest stay as they are


class MaskedText(NamedTuple):
    """Ids of a text after masking, the positions of the masked tokens, and the original tokens there."""

    ids: NDArray[np.int64]
    hidden: NDArray[np.int64]
    right: NDArray[np.int64]


@dataclass(frozen=True)
class MaskedTexts:
    """A batch of masked texts.

    Attributes:
        ids: (B, S) int64: begin symbol, tokens, end symbol, padding.
        hidden: (N,) int64: indices of the masked tokens in the flattened B x S.
        right: (N,) int64: the original tokens there.
        source_tokens: number of positions without padding, begin and end symbols counted.
        pad: id of the padding symbol.
    """

    ids: Tensor
    hidden: Tensor
    right: Tensor
    source_tokens: int
    pad: int

    @property
    def examples(self) -> int:
        """Number of texts, B."""
        return len(self.ids)

    @property
    def target_tokens(self) -> int:
        """Number of masked tokens, N."""
        return len(self.right)

    @property
    def places(self) -> int:
        """Number of positions, padding included, and of predictions."""
        return self.ids.numel() + len(self.right)

    @property
    def shape(self) -> tuple[bool, int]:
        """Key of the shapes that torch.compile makes code for: whether B > 1, S."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[MaskedTexts]:
        """Split into two halves, each padded as little as possible; one text stays whole."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [self.rows(0, middle), self.rows(middle, len(self.ids))]

    def rows(self, first: int, end: int) -> MaskedTexts:
        """Return a batch of some of the texts."""
        ids, length = self.ids[first:end], self.ids.size(1)
        lengths = (ids != self.pad).sum(1)
        longest = int(lengths.max())
        inside = (self.hidden >= first * length) & (self.hidden < end * length)
        places = self.hidden[inside] - first * length
        return replace(
            self,
            ids=ids[:, :longest],
            hidden=places // length * longest + places % length,
            right=self.right[inside],
            source_tokens=int(lengths.sum()),
        )

    def padded(self, limit: int) -> MaskedTexts:
        """Pad to `next_length` of the length, at most to `limit`."""
        length = self.ids.size(1)
        more = max(0, min(next_length(length), limit) - length)
        return replace(
            self,
            ids=functional.pad(self.ids, (0, more), value=self.pad),
            hidden=self.hidden + self.hidden // length * more,
        )

    def to(self, device: torch.device) -> MaskedTexts:
        """Move the batch to a device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> MaskedTexts:
        """Copy the batch to pinned memory, from which a GPU can fetch it asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> MaskedTexts:
        """Apply a function to each tensor of the batch."""
        return replace(self, ids=change(self.ids), hidden=change(self.hidden), right=change(self.right))


def hide_tokens(
    ids: Ids, share: float, rng: np.random.Generator, *, mask: int, others: tuple[int, int]
) -> MaskedText:
    """Mask some tokens of a text, at least one: most become the mask, some another token, some stay as they are.

    Args:
        ids: ids without begin and end symbols.
        share: share of the tokens to predict.
        rng: random generator.
        mask: id of the mask symbol.
        others: range (first, end) of the ids of random replacements.
    """
    right = np.asarray(ids, np.int64)
    chosen = rng.random(len(right)) < share
    if not chosen.any():
        chosen[rng.integers(len(right))] = True
    hidden = chosen.nonzero()[0]
    fate = rng.random(len(hidden))
    strangers = rng.integers(*others, size=len(hidden))
    shown = right.copy()
    shown[hidden] = np.where(
        fate < SHOWN_AS_MASK,
        mask,
        np.where(fate < SHOWN_AS_MASK + SHOWN_AS_OTHER, strangers, right[hidden]),
    )
    return MaskedText(shown, hidden, right[hidden])


def make_masked(rows: Sequence[MaskedText], *, pad: int, bos: int, eos: int) -> MaskedTexts:
    """Make a batch of masked texts."""
    ids = pad_rows([row.ids.astype(np.int32) for row in rows], pad, first=bos, last=eos)
    length = ids.size(1)
    hidden = [row.hidden + 1 + place * length for place, row in enumerate(rows)]
    right = np.concatenate([row.right for row in rows])
    tokens = sum(len(row.ids) + 2 for row in rows)
    return MaskedTexts(ids, torch.from_numpy(np.concatenate(hidden)), torch.from_numpy(right), tokens, pad)


def blank_masked(*, pad: int, bos: int, eos: int) -> MaskedTexts:
    """Return a batch without masked tokens: its loss and gradients are 0."""
    nothing = torch.zeros(0, dtype=torch.int64)
    return MaskedTexts(torch.tensor([[bos, eos]]), nothing, nothing, 0, pad)
