"""Padded batches of texts with labels, for classifiers.

Shapes: B batch, S longest text with begin and end symbols. A text is `<s> tokens </s>`; two are `<s> tokens </s>
tokens </s>`, or with two end symbols between them, as some pre-trained models expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from manyheads.tensors.pairs import Ids, TensorBatch, pad_rows

NO_LABEL = -100  # ignored by the loss


class Example(NamedTuple):
    """Ids of a text without begin and end symbols (an end symbol separates two texts), and its label."""

    ids: Ids
    label: int


@dataclass(frozen=True)
class Examples(TensorBatch):
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
    def num_positions(self) -> int:
        """Number of positions, padding included, and of labels."""
        return self.ids.numel() + len(self.labels)

    def rows(self, first: int, end: int) -> Examples:
        """Return a batch of the examples from `first` up to `end`, padded as little as possible."""
        labels = self.labels[first:end]
        lengths = (self.ids[first:end] != self.pad).sum(1)
        longest = int(lengths.max())
        return replace(
            self,
            ids=self.ids[first:end, :longest],
            types=None if self.types is None else self.types[first:end, :longest],
            labels=labels,
            source_tokens=int(lengths.sum()),
            target_tokens=int((labels != NO_LABEL).sum()),
        )


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
    labelled = sum(row.label != NO_LABEL for row in rows)
    return Examples(ids, types, labels, sum(len(row.ids) + 2 for row in rows), labelled, pad)


def blank_examples(*, pad: int, bos: int, eos: int, with_types: bool) -> Examples:
    """Return a batch without labels: its loss and gradients are 0."""
    rows = [Example([], NO_LABEL)]
    return replace(make_examples(rows, pad=pad, bos=bos, eos=eos, with_types=with_types), source_tokens=0)
