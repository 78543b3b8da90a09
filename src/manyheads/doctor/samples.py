"""Draw token ids to examine a model with.

Shapes: B batch, S source length, T target length; primes, each another one, so that no axis passes for another.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.errors import UsageError

__all__ = ["Samples", "with_padding"]

BATCH, SOURCE, TARGET = 3, 7, 5


class Samples:
    """Random ids of the sides of a model; neighbouring tokens differ, and targets begin with their mark.

    Raises:
        UsageError: a mark is no id, or there are not three ids that are no marks.
    """

    def __init__(self, adapter: ModelAdapter, seed: int = 0) -> None:
        self.adapter = adapter
        self.generator = torch.Generator().manual_seed(seed)
        for side, size in zip(adapter.sides, filter(None, (adapter.source_size, adapter.target_size)), strict=True):
            marks = {"pad": adapter.pad} | ({"bos": adapter.bos} if side == "target" else {})
            for name, mark in marks.items():
                if mark is not None and not 0 <= mark < size:
                    raise UsageError(f"{name} = {mark} is no id of the {side} side: vocab_size there is {size}.")
            if len(adapter.content(side)) < 3:
                raise UsageError(
                    f"of the {side} side's ids too few are left that are no marks: vocab_size is the number of all "
                    "ids, or a pair (source, target)."
                )

    def content(self, side: str, batch: int, length: int) -> Tensor:
        """Return ids that are no marks: (batch, length)."""
        ids = torch.tensor(self.adapter.content(side))
        steps = torch.randint(1, len(ids), (batch, length), generator=self.generator)
        return ids[steps.cumsum(1) % len(ids)]

    def ids(self, *, batch: int = BATCH, source: int = SOURCE, target: int = TARGET) -> dict[str, Tensor]:
        """Return ids of each side: (batch, source) and (batch, target)."""
        lengths = {"source": source, "target": target}
        found = {side: self.content(side, batch, lengths[side]) for side in self.adapter.sides}
        if "target" in found and self.adapter.bos is not None:
            found["target"][:, 0] = self.adapter.bos
        return found

    def with_the_highest(self) -> dict[str, Tensor]:
        """Return ids of each side with the highest id at the end of each row."""
        ids = self.ids()
        for side, rows in ids.items():
            rows[:, -1] = self.adapter.content(side)[-1]
        return ids

    def others(self, side: str, ids: Tensor) -> Tensor:
        """Return content that differs from ids (B, length) at every position."""
        known = torch.tensor(self.adapter.content(side))
        fresh = self.content(side, *ids.shape)
        position = (known[None] == fresh.flatten()[:, None]).long().argmax(1).view(ids.shape)
        return torch.where(fresh == ids, known[(position + 1) % len(known)], fresh)


def with_padding(ids: Tensor, pad: int, amount: int) -> Tensor:
    """Append padding to ids: (B, length) -> (B, length + amount)."""
    return torch.nn.functional.pad(ids, (0, amount), value=pad)
