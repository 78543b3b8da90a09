"""Cut a stream of tokens into blocks of equal length, the training examples of a language model.

Shapes: B blocks, T tokens a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BlockBatch", "BlockSampler", "blank_blocks", "make_blocks"]

Starts = NDArray[np.int64]


@dataclass(frozen=True)
class BlockBatch:
    """Inputs and labels of a language model, without padding.

    Attributes:
        ids: input tokens (B, T) int64.
        right: labels (B, T) int64, the token after each input token; (0, T) if there is nothing to predict.
    """

    ids: Tensor
    right: Tensor

    @property
    def examples(self) -> int:
        """Number of blocks, B."""
        return len(self.ids)

    @property
    def source_tokens(self) -> int:
        """Number of source tokens: 0."""
        return 0

    @property
    def target_tokens(self) -> int:
        """Number of predicted tokens; the loss is divided by it."""
        return self.right.numel()

    @property
    def places(self) -> int:
        """Number of positions."""
        return self.ids.numel()

    @property
    def shape(self) -> tuple[bool, int]:
        """Key of the shapes that torch.compile makes code for: whether B > 1, T."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[BlockBatch]:
        """Split into two halves; one block stays whole."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [BlockBatch(self.ids[rows], self.right[rows]) for rows in (slice(middle), slice(middle, None))]

    def padded(self, limit: int) -> BlockBatch:
        """Return the batch itself: all blocks have the same length."""
        return self

    def to(self, device: torch.device) -> BlockBatch:
        """Move the batch to a device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> BlockBatch:
        """Copy the batch to pinned memory, from which a GPU can fetch it asynchronously."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> BlockBatch:
        """Apply a function to each tensor of the batch."""
        return replace(self, ids=change(self.ids), right=change(self.right))


class BlockSampler:
    """The blocks of each update of an epoch, a function of the seed and the number of the epoch alone.

    The stream is treated as a ring that is cut at another random position in each epoch, so that the edges of the
    blocks move. All blocks are full; in an epoch every token is predicted once, and fewer than T of them twice.
    """

    def __init__(self, length: int, *, block: int, rows: int, seed: int) -> None:
        """Prepare what all epochs share.

        Args:
            length: number of tokens of the stream, at least one block.
            block: number of tokens a block, T.
            rows: maximum number of blocks an update; the blocks of an epoch are divided evenly.
            seed: seed of the cuts and the order.
        """
        self.length = length
        self.block = block
        self.blocks = math.ceil(length / block)
        self.updates = math.ceil(self.blocks / rows)
        self.seed = seed

    def epoch(self, number: int) -> list[Starts]:
        """Return the start positions of the blocks of each update."""
        generator = np.random.default_rng((self.seed, number))
        first = generator.integers(self.length)
        starts = (first + self.block * generator.permutation(self.blocks)) % self.length
        return np.array_split(starts, self.updates)


def make_blocks(stream: NDArray[np.int32], starts: Starts, block: int) -> BlockBatch:
    """Make a batch of the blocks that start at these positions of the ring, with the token after each token."""
    places = (starts[:, None] + np.arange(block + 1)) % len(stream)
    tokens = torch.from_numpy(stream[places].astype(np.int64))
    return BlockBatch(tokens[:, :-1], tokens[:, 1:])


def blank_blocks(token: int) -> BlockBatch:
    """Return a batch of one token with nothing to predict: its loss and gradients are 0."""
    return BlockBatch(torch.full((1, 1), token), torch.empty(0, 1, dtype=torch.int64))
