"""Padded batches of texts with labels, for classifiers.

Shapes: B batch, S longest text with begin and end symbols. A text is `<s> tokens </s>`; two are `<s> tokens </s>
tokens </s>`, or with two end symbols between them, as some pre-trained models expect.
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
    """Ids of a text without begin and end symbols (an end symbol separates two texts), and its label."""

    ids: Ids
    label: int


@dataclass(frozen=True)
class Examples:
    """A batch of labelled texts.

    Attributes:
        ids: (B, S) int64: begin symbol, tokens, end symbol, padding.
        types: (B, S) int64: 0 up to the end symbol of the first text, 1 in the second; None for models without
            types.
        labels: (B,) int64; `NO_LABEL` where there is none.
        source_tokens: number of positions without padding, begin and end symbols counted.
        target_tokens: number of labels to predict.
        pad: id of the padding symbol.
    """

    ids: Tensor
    types: Tensor | None
    labels: Tensor
    source_tokens: int
    target_tokens: int
    pad: int

    @property
    def examples(self) -> int:
        """Number of texts, B."""
        return len(self.ids)

    @property
    def places(self) -> int:
        """Number of positions, padding included, and of labels."""
        return self.ids.numel() + len(self.labels)

    @property
    def shape(self) -> tuple[bool, int]:
        """Key of the shapes that torch.compile makes code for: whether B > 1, S."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[Examples]:
        """Split into two halves, each padded as little as possible; one example stays whole."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [self.rows(slice(None, middle)), self.rows(slice(middle, None))]

    def rows(self, rows: slice) -> Examples:
        """Return a batch of some of the examples."""
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
        """Pad to `next_length` of the length, at most to `limit`."""
        more = max(0, min(next_length(self.ids.size(1)), limit) - self.ids.size(1))
        return replace(
            self,
            ids=functional.pad(self.ids, (0, more), value=self.pad),
            types=None if self.types is None else functional.pad(self.types, (0, more)),
        )

    def to(self, device: torch.device) -> Examples:
        """Move the batch to a device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> Examples:
        """Copy the batch to pinned memory, from which a GPU can fetch it asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Examples:
        """Apply a function to each tensor of the batch."""
        types = None if self.types is None else change(self.types)
        return replace(self, ids=change(self.ids), types=types, labels=change(self.labels))


def cut_text(ids: Ids, limit: int, *, eos: int) -> Ids:
    """Cut a text to the length that a model takes; of two texts the longer one loses its end first.

    Args:
        ids: ids without begin and end symbols; an end symbol separates two texts.
        limit: maximum number of ids, begin and end symbols counted.
        eos: id of the end symbol.
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
    """Pad rows of ids with begin and end symbols: ids (B, S), and their types (B, S) if the model has types."""
    ids = pad_rows(rows, pad, first=bos, last=eos)
    if not with_types:
        return ids, None
    ends = (ids == eos).long()
    types = (ends.cumsum(1) - ends).clamp_max(1)  # after the first end mark
    return ids, types * (ids != pad)


def make_examples(rows: Sequence[Example], *, pad: int, bos: int, eos: int, with_types: bool) -> Examples:
    """Make a batch of examples."""
    ids, types = make_texts([row.ids for row in rows], pad=pad, bos=bos, eos=eos, with_types=with_types)
    labels = torch.from_numpy(np.asarray([row.label for row in rows], np.int64))
    said = sum(row.label != NO_LABEL for row in rows)
    return Examples(ids, types, labels, sum(len(row.ids) + 2 for row in rows), said, pad)


def blank_examples(*, pad: int, bos: int, eos: int, with_types: bool) -> Examples:
    """Return a batch without labels: its loss and gradients are 0."""
    rows = [Example([], NO_LABEL)]
    return replace(make_examples(rows, pad=pad, bos=bos, eos=eos, with_types=with_types), source_tokens=0)
