"""A stream of tokens cut into blocks, which are what a language model is trained on.

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
    """What a language model is fed and what it must predict: nothing is padding.

    Attributes:
        ids: (B, T) int64.
        right: (B, T) int64, the token after each; (0, T) when there is nothing to predict.
    """

    ids: Tensor
    right: Tensor

    @property
    def examples(self) -> int:
        """How many blocks, B."""
        return len(self.ids)

    @property
    def source_tokens(self) -> int:
        """None: there is no source."""
        return 0

    @property
    def target_tokens(self) -> int:
        """Tokens that are predicted: what the loss is divided by."""
        return self.right.numel()

    @property
    def places(self) -> int:
        """Positions that are computed."""
        return self.ids.numel()

    @property
    def shape(self) -> tuple[bool, int]:
        """What code is compiled for: whether there are several blocks, T."""
        return len(self.ids) > 1, self.ids.size(1)

    def halves(self) -> list[BlockBatch]:
        """The first and the second half of the blocks; one block stays as it is."""
        if len(self.ids) < 2:
            return [self]
        middle = len(self.ids) // 2
        return [BlockBatch(self.ids[rows], self.right[rows]) for rows in (slice(middle), slice(middle, None))]

    def padded(self, limit: int) -> BlockBatch:
        """The same: all blocks have one length."""
        return self

    def to(self, device: torch.device) -> BlockBatch:
        """The same batch on another device."""
        return self.mapped(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> BlockBatch:
        """The same batch in memory from where a GPU fetches it while the processor goes on."""
        return self.mapped(Tensor.pin_memory)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> BlockBatch:
        """The same batch with each tensor changed."""
        return replace(self, ids=change(self.ids), right=change(self.right))


class BlockSampler:
    """Which blocks make up each update of an epoch, as a function of the seed and the epoch's number alone.

    The stream is taken as a ring that is cut anew in each epoch, at a place drawn by chance: the edges of the
    blocks move. All blocks are full; in an epoch every token is predicted once, and fewer than T of them twice.
    """

    def __init__(self, length: int, *, block: int, rows: int, seed: int) -> None:
        """Lay out what all epochs have in common.

        Args:
            length: tokens of the stream, at least a block.
            block: T.
            rows: blocks an update; those of an epoch are shared out evenly, so that some updates have fewer.
            seed: of cuts and order.
        """
        self.length = length
        self.block = block
        self.blocks = math.ceil(length / block)
        self.updates = math.ceil(self.blocks / rows)
        self.seed = seed

    def epoch(self, number: int) -> list[Starts]:
        """For each update, the places in the stream where its blocks begin."""
        generator = np.random.default_rng((self.seed, number))
        first = generator.integers(self.length)
        starts = (first + self.block * generator.permutation(self.blocks)) % self.length
        return np.array_split(starts, self.updates)


def make_blocks(stream: NDArray[np.int32], starts: Starts, block: int) -> BlockBatch:
    """The blocks that begin at these places of a ring of tokens, and the token after each of theirs."""
    places = (starts[:, None] + np.arange(block + 1)) % len(stream)
    tokens = torch.from_numpy(stream[places].astype(np.int64))
    return BlockBatch(tokens[:, :-1], tokens[:, 1:])


def blank_blocks(token: int) -> BlockBatch:
    """A batch without anything to predict: its loss is 0, and so are its gradients. It holds one token, any."""
    return BlockBatch(torch.full((1, 1), token), torch.empty(0, 1, dtype=torch.int64))
