"""Texts with tokens hidden in them, and what these were (BERT: Devlin et al. 2019, section 3.1).

Shapes: B batch, S longest text with its marks, N hidden tokens.
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
    """Ids of a text as the model sees them, where tokens are hidden in it, and what they were."""

    ids: NDArray[np.int64]
    hidden: NDArray[np.int64]
    right: NDArray[np.int64]


@dataclass(frozen=True)
class MaskedTexts:
    """A part of an update (`training.part.Part`).

    Attributes:
        ids: (B, S) int64: begin mark, tokens, end mark, padding.
        hidden: (N,) int64: where tokens are asked about, row by row, as places in the B x S.
        right: (N,) int64: what they were.
        source_tokens: real positions, marks counted.
        pad: the id of padding.
    """

    ids: Tensor
    hidden: Tensor
    right: Tensor
    source_tokens: int
    pad: int

    @property
    def examples(self) -> int:
        """How many texts, B."""
        return len(self.ids)

    @property
    def target_tokens(self) -> int:
        """How many tokens are asked about, N."""
        return len(self.right)

    @property
    def places(self) -> int:
        """Positions that are computed, padding and all, and those that are guessed."""
        return self.ids.numel() + len(self.right)

    @property
    def shape(self) -> tuple[bool, int]:
        """What code is compiled for: whether there are several rows, S."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[MaskedTexts]:
        """The first and the second half, padded no more than they need; one text stays as it is."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [self.rows(0, middle), self.rows(middle, len(self.ids))]

    def rows(self, first: int, end: int) -> MaskedTexts:
        """Some of the texts."""
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
        """The same texts, as long as their `next_length`, at most `limit`."""
        length = self.ids.size(1)
        more = max(0, min(next_length(length), limit) - length)
        return replace(
            self,
            ids=functional.pad(self.ids, (0, more), value=self.pad),
            hidden=self.hidden + self.hidden // length * more,
        )

    def to(self, device: torch.device) -> MaskedTexts:
        """The same on another device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> MaskedTexts:
        """The same in memory from where a GPU fetches it while the processor goes on."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> MaskedTexts:
        """The same with each tensor changed."""
        return replace(self, ids=change(self.ids), hidden=change(self.hidden), right=change(self.right))


def hide_tokens(
    ids: Ids, share: float, dice: np.random.Generator, *, mask: int, others: tuple[int, int]
) -> MaskedText:
    """Hide some tokens of a text, one at the least: most behind a mask, some behind another token, some not at all.

    Args:
        ids: without marks.
        share: of the tokens that are asked about.
        dice: chance.
        mask: what stands for a hidden token.
        others: ids of other tokens: from, up to.
    """
    right = np.asarray(ids, np.int64)
    chosen = dice.random(len(right)) < share
    if not chosen.any():
        chosen[dice.integers(len(right))] = True
    hidden = chosen.nonzero()[0]
    fate = dice.random(len(hidden))
    strangers = dice.integers(*others, size=len(hidden))
    shown = right.copy()
    shown[hidden] = np.where(
        fate < SHOWN_AS_MASK,
        mask,
        np.where(fate < SHOWN_AS_MASK + SHOWN_AS_OTHER, strangers, right[hidden]),
    )
    return MaskedText(shown, hidden, right[hidden])


def make_masked(rows: Sequence[MaskedText], *, pad: int, bos: int, eos: int) -> MaskedTexts:
    """Texts with hidden tokens as tensors."""
    ids = pad_rows([row.ids.astype(np.int32) for row in rows], pad, first=bos, last=eos)
    length = ids.size(1)
    hidden = [row.hidden + 1 + place * length for place, row in enumerate(rows)]
    right = np.concatenate([row.right for row in rows])
    tokens = sum(len(row.ids) + 2 for row in rows)
    return MaskedTexts(ids, torch.from_numpy(np.concatenate(hidden)), torch.from_numpy(right), tokens, pad)


def blank_masked(*, pad: int, bos: int, eos: int) -> MaskedTexts:
    """A batch that asks about nothing: its loss is 0, and so are its gradients."""
    nothing = torch.zeros(0, dtype=torch.int64)
    return MaskedTexts(torch.tensor([[bos, eos]]), nothing, nothing, 0, pad)
