"""Micro-batches and their source, and a thread that makes the next batches while the model computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tensors.blocks import BlockBatch
from manyheads.tensors.examples import Examples
from manyheads.tensors.masked import MaskedTexts
from manyheads.tensors.pairs import Batch

MicroBatch = Batch | Examples | BlockBatch | MaskedTexts  # the tensors of one part of an update
Indices = NDArray[np.int64]  # of examples in the corpus: pairs of sentences, texts or blocks
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_AHEAD = 2  # results that may be computed before they are needed


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


class BatchSource(Protocol):
    """The batches of a training; every result depends on the arguments alone."""

    def epoch(self, number: int, /) -> Sequence[Indices]:
        """Return the examples of each update of an epoch; every epoch has the same number of updates."""
        ...

    def batches(self, epoch: int, position: int, indices: Indices, /) -> Sequence[MicroBatch]:
        """Return the micro-batches of one update that this process computes, on the CPU; at least one.

        Epochs, and their updates, are numbered from 0; `indices` are those that `epoch` returned.
        """
        ...

    def heaviest(self) -> int:
        """Return the position in epoch 0 of the update that needs the most memory."""
        ...

    def describe(self, indices: Indices, /) -> str:
        """Return the place of these examples in the corpus, for a message."""
        ...


def prefetch_updates(
    source: BatchSource, epoch: int, plan: Sequence[Indices], first: int, device: torch.device
) -> Iterator[tuple[Indices, Sequence[MicroBatch]]]:
    """Yield the examples and the micro-batches of each update of an epoch, made ahead by a thread.

    The first is that at the position `first`; batches for a GPU are put into pinned memory.
    """

    def make(position: int) -> tuple[Indices, Sequence[MicroBatch]]:
        batches = source.batches(epoch, position, plan[position])
        return plan[position], [batch.pinned() for batch in batches] if device.type == "cuda" else batches

    return _prefetch(make, range(first, len(plan)))


def _prefetch(make: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> Iterator[_Result]:
    """Yield `make(task)` for each task, in order, computed by a thread a little ahead.

    More threads would wait for each other: they share the interpreter. An exception in `make` is raised when its
    result is due. Leaving the loop early waits for the result that is being computed.
    """
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(1, "batches") as pool:
        for task in tasks:
            waiting.append(pool.submit(make, task))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
