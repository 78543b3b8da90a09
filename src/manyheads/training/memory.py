"""Running out of memory: what it looks like, and what is left to try."""

from __future__ import annotations

import torch

from manyheads.data.batch import Batch

__all__ = ["out_of_memory", "split"]

SIGNS = ("out of memory", "can't allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left; a CPU has no class of its own for it."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in SIGNS)


def split(batches: list[Batch], times: int) -> list[Batch]:
    """Each batch halved that many times, down to single pairs: the same pairs in the same order."""
    for _ in range(times):
        batches = [half for batch in batches for half in batch.halves()]
    return batches
