"""Texts with labels as tensors: what a classifier is fed, and what it must say.

Shapes: B batch, S longest text with its marks. A text is `<s> tokens </s>`; two are `<s> tokens </s> tokens </s>`,
or with the two end marks between them that some pre-trained models know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.data.batch import Ids, next_length, pad_rows

__all__ = ["NO_LABEL", "Example", "Examples", "blank_examples", "cut_text", "make_examples", "make_texts"]

NO_LABEL = -100  # what a loss passes over


class Example(NamedTuple):
    """Ids of a text without the marks around it (end marks stand between two texts), and its label."""

    ids: Ids
    label: int


@dataclass(frozen=True)
class Examples:
    """A part of an update (`training.part.Part`).

    Attributes:
        ids: (B, S) int64: begin mark, tokens, end mark, padding.
        types: (B, S) int64: 0 up to the end mark of the first text, 1 in the second; None for models without.
        labels: (B,) int64; `NO_LABEL` where there is none.
        source_tokens: real positions, marks counted.
        target_tokens: how many labels are to be said.
        pad: the id of padding.
    """

    ids: Tensor
    types: Tensor | None
    labels: Tensor
    source_tokens: int
    target_tokens: int
    pad: int

    @property
    def examples(self) -> int:
        """How many texts, B."""
        return len(self.ids)

    @property
    def places(self) -> int:
        """Positions that are computed, padding and all, and a label for each text."""
        return self.ids.numel() + len(self.labels)

    @property
    def shape(self) -> tuple[bool, int]:
        """What code is compiled for: whether there are several rows, S."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[Examples]:
        """The first and the second half, padded no more than they need; one example stays as it is."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [self.rows(slice(None, middle)), self.rows(slice(middle, None))]

    def rows(self, rows: slice) -> Examples:
        """Some of the examples."""
        lengths = (self.ids[rows] != self.pad).sum(1)
        longest = int(lengths.max())
        return replace(
            self,
            ids=self.ids[rows, :longest],
            types=None if self.types is None else self.types[rows, :longest],
            labels=self.labels[rows],
            source_tokens=int(lengths.sum()),
            target_tokens=int((self.labels[rows] != NO_LABEL).sum()),
        )

    def padded(self, limit: int) -> Examples:
        """The same examples, as long as their `next_length`, at most `limit`."""
        more = max(0, min(next_length(self.ids.size(1)), limit) - self.ids.size(1))
        return replace(
            self,
            ids=functional.pad(self.ids, (0, more), value=self.pad),
            types=None if self.types is None else functional.pad(self.types, (0, more)),
        )

    def to(self, device: torch.device) -> Examples:
        """The same on another device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> Examples:
        """The same in memory from where a GPU fetches it while the processor goes on."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Examples:
        """The same with each tensor changed."""
        types = None if self.types is None else change(self.types)
        return replace(self, ids=change(self.ids), types=types, labels=change(self.labels))


def cut_text(ids: Ids, limit: int, *, eos: int) -> Ids:
    """As much of a text as a model takes; of two texts the longer one loses its end first.

    Args:
        ids: without the marks around them; end marks stand between two texts.
        limit: most ids, those marks counted.
        eos: the end mark.
    """
    if len(ids) <= limit:
        return ids
    plain = [int(token) for token in ids]
    if eos not in plain:
        return plain[:limit]
    first, marks = plain.index(eos), plain.count(eos)
    begin = first + marks  # of the second text
    room, second = max(0, limit - marks), len(plain) - begin
    kept = min(first, max(room - second, room - room // 2))  # of the first text
    return [*plain[:kept], *[eos] * marks, *plain[begin : begin + room - kept]]


def make_texts(
    rows: Sequence[Ids], *, pad: int, bos: int, eos: int, with_types: bool
) -> tuple[Tensor, Tensor | None]:
    """Rows of ids without marks as ids (B, S), and the type of each (B, S) where a model has types."""
    ids = pad_rows(rows, pad, first=bos, last=eos)
    if not with_types:
        return ids, None
    ends = (ids == eos).long()
    types = (ends.cumsum(1) - ends).clamp_max(1)  # after the first end mark
    return ids, types * (ids != pad)


def make_examples(rows: Sequence[Example], *, pad: int, bos: int, eos: int, with_types: bool) -> Examples:
    """Examples as tensors."""
    ids, types = make_texts([row.ids for row in rows], pad=pad, bos=bos, eos=eos, with_types=with_types)
    labels = torch.from_numpy(np.asarray([row.label for row in rows], np.int64))
    said = sum(row.label != NO_LABEL for row in rows)
    return Examples(ids, types, labels, sum(len(row.ids) + 2 for row in rows), said, pad)


def blank_examples(*, pad: int, bos: int, eos: int, with_types: bool) -> Examples:
    """A batch without a label: its loss is 0, and so are its gradients."""
    rows = [Example([], NO_LABEL)]
    return replace(make_examples(rows, pad=pad, bos=bos, eos=eos, with_types=with_types), source_tokens=0)
