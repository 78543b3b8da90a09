"""The interface of a micro-batch, which is the same for every task, and its losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

__all__ = ["Losses", "MicroBatch"]


class MicroBatch(Protocol):
    """The tensors of one part of an update (for translation: `data.batch.Batch`)."""

    @property
    def examples(self) -> int:
        """Number of texts, or of pairs of texts."""
        ...

    @property
    def source_tokens(self) -> int:
        """Number of real tokens that are read and not predicted."""
        ...

    @property
    def target_tokens(self) -> int:
        """Number of predictions, by which the loss is divided."""
        ...

    @property
    def places(self) -> int:
        """Number of positions that are computed, padding included."""
        ...

    @property
    def shape(self) -> tuple[bool | int, ...]:
        """The lengths for which layers are compiled."""
        ...

    def halves(self) -> Sequence[Self]:
        """Return the first and the second half of the examples; a single example is returned as it is."""
        ...

    def padded(self, limit: int) -> Self:
        """Return the same examples padded to one of a few lengths, at most `limit`."""
        ...

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        ...

    def pinned(self) -> Self:
        """Return the batch in pinned memory, from which a GPU copies without waiting for the CPU."""
        ...


class Losses(NamedTuple):
    """The losses of one micro-batch, summed over its target tokens, in nats.

    Attributes:
        batch: the micro-batch, on the training device.
        loss: the training loss, label smoothing included, float32 ().
        nll: the plain negative log-likelihood, without a gradient, float32 ().
    """

    batch: MicroBatch
    loss: Tensor
    nll: Tensor
