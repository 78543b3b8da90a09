"""The processes that train together; alone, nothing is sent.

`torchrun` starts them and tells each its place in the environment. They compute gradients on different parts of the
same update; all else they do alike, and what could differ (clocks, signals) they agree upon.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

__all__ = ["ALONE", "World", "is_main_process", "joined"]

PATIENCE = timedelta(minutes=30)  # how long a process waits for the others; the first one may tokenise meanwhile


@dataclass(frozen=True)
class World:
    """One process among `size`, the first being 0.

    Attributes:
        rank: which one this is; 0 is the one that writes and speaks.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over all processes, in float64."""
        if self.size == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64)  # on the CPU: no accelerator has to wait
        distributed.all_reduce(sums)
        return sums.tolist()

    def share(self, items: Sequence[Any]) -> Sequence[Any]:
        """Those of a common sequence that are this process's."""
        return items[self.rank :: self.size]

    def gather(self, value: Any) -> list[Any]:
        """What each process has, in the order of their ranks; JSON values."""
        return [json.loads(bytes(row.tolist())) for row in self.gather_bytes(json.dumps(value).encode())]

    def gather_tensors(self, tensor: Tensor) -> list[Tensor]:
        """The tensor of each process, all of one shape and on the CPU."""
        if self.size == 1:
            return [tensor]
        rows = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(rows, tensor)
        return rows

    def gather_bytes(self, content: bytes) -> list[Tensor]:
        """The bytes of each process, of any length."""
        own = torch.tensor(list(content), dtype=torch.uint8)
        lengths = [int(length) for length in self.gather_tensors(torch.tensor([len(own)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(own)] = own
        rows = self.gather_tensors(padded)
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    def wait(self) -> None:
        """Until every process has come this far."""
        self.total([0.0])


ALONE = World()


def is_main_process() -> bool:
    """Whether this process is alone, or the one of several that writes and speaks."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined() -> Iterator[World]:
    """The world this process was started into: one of several by `torchrun`, else alone."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        world = World(distributed.get_rank(), size)
        yield world
        world.wait()  # nobody hangs up while another may still be speaking
    finally:
        gc.collect()  # a trainer that is still there would hold the group's threads until the process dies of them
        distributed.destroy_process_group()
