"""What training knows of a batch, whatever the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import torch

__all__ = ["Part"]


class Part(Protocol):
    """The tensors of one part of an update (of a translation: `data.batch.Batch`)."""

    @property
    def examples(self) -> int:
        """How many texts, or pairs of texts."""
        ...

    @property
    def source_tokens(self) -> int:
        """Real tokens that are only read."""
        ...

    @property
    def target_tokens(self) -> int:
        """How many things are predicted: what the loss is divided by."""
        ...

    @property
    def places(self) -> int:
        """Positions that are computed, padding and all."""
        ...

    @property
    def shape(self) -> tuple[bool | int, ...]:
        """What code is compiled for."""
        ...

    def halves(self) -> Sequence[Self]:
        """The first and the second half of the examples; one example stays as it is."""
        ...

    def padded(self, limit: int) -> Self:
        """The same examples in one of few lengths, at most `limit`."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same on another device."""
        ...

    def pinned(self) -> Self:
        """The same in memory from where a GPU fetches it while the processor goes on."""
        ...
