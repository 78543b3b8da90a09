"""The processes that train together (torch.distributed); a single process communicates nothing.

`torchrun` starts the processes and sets the rank of each in the environment. They compute the gradients of
different micro-batches of the same update, and do everything else alike. Values that could differ (clocks, signals)
are shared.
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

_TIMEOUT = timedelta(minutes=30)  # timeout of a process that waits for others; the first may be tokenising


@dataclass(frozen=True)
class World:
    """The processes of a training, seen from one of them.

    Attributes:
        rank: number of this process, the first being 0; the first process writes files and messages.
        size: number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and messages."""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Sum each value over all processes, in float64."""
        if self.size == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64)  # on the CPU, so that no accelerator waits
        distributed.all_reduce(sums)
        return sums.tolist()

    def share(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return this process's share of a sequence: every item whose index is its rank modulo the size."""
        return items[self.rank :: self.size]

    def gather(self, value: Any) -> list[Any]:
        """Gather a JSON value from every process, in the order of their ranks."""
        encoded = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)
        lengths = [int(length) for length in self.gather_tensors(torch.tensor([len(encoded)]))]
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(encoded)] = encoded
        rows = self.gather_tensors(padded)
        return [json.loads(bytes(row[:length].tolist())) for row, length in zip(rows, lengths, strict=True)]

    def gather_tensors(self, tensor: Tensor) -> list[Tensor]:
        """Gather a tensor from every process; all have the same shape and are on the CPU."""
        if self.size == 1:
            return [tensor]
        rows = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(rows, tensor)
        return rows

    def wait(self) -> None:
        """Wait until every process has called this method (a barrier)."""
        self.total([0.0])


ALONE = World()


def is_main_process() -> bool:
    """Return whether this process is the only one, or the first of several."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def join_world() -> Iterator[World]:
    """Join the process group if `torchrun` started this process; yield its world, or `ALONE`."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, timeout=_TIMEOUT)
    try:
        world = World(distributed.get_rank(), size)
        yield world
        world.wait()  # no process closes its connections while another still uses them
    finally:
        gc.collect()  # a trainer not yet collected would keep threads of the group, which crash at exit
        distributed.destroy_process_group()
