"""Token ids to examine a model with.

Shapes: B batch, S source length, T target length; primes, each another one, so that no axis passes for another.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manyheads.doctor.patient import Patient

__all__ = ["Samples", "with_padding"]

BATCH, SOURCE, TARGET = 3, 7, 5


class Samples:
    """Random ids of a patient's sides, content without repeats beside each other; targets begin with their mark."""

    def __init__(self, patient: Patient, seed: int = 0) -> None:
        self.patient = patient
        self.generator = torch.Generator().manual_seed(seed)

    def content(self, side: str, batch: int, length: int) -> Tensor:
        """Ids that are no marks: (batch, length)."""
        ids = torch.tensor(self.patient.content(side))
        steps = torch.randint(1, len(ids), (batch, length), generator=self.generator)
        return ids[steps.cumsum(1) % len(ids)]

    def ids(self, *, batch: int = BATCH, source: int = SOURCE, target: int = TARGET) -> dict[str, Tensor]:
        """Ids of each side: (batch, source) and (batch, target)."""
        lengths = {"source": source, "target": target}
        found = {side: self.content(side, batch, lengths[side]) for side in self.patient.sides}
        if "target" in found and self.patient.bos is not None:
            found["target"][:, 0] = self.patient.bos
        return found

    def others(self, side: str, ids: Tensor) -> Tensor:
        """Content that is another token at every place of ids (B, length)."""
        known = torch.tensor(self.patient.content(side))
        fresh = self.content(side, *ids.shape)
        place = (known[None] == fresh.flatten()[:, None]).long().argmax(1).view(ids.shape)
        return torch.where(fresh == ids, known[(place + 1) % len(known)], fresh)


def with_padding(ids: Tensor, pad: int, amount: int) -> Tensor:
    """Ids (B, length) with padding after them: (B, length + amount)."""
    return torch.nn.functional.pad(ids, (0, amount), value=pad)
