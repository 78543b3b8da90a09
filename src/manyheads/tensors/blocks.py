"""Cut a stream of tokens into blocks of equal length, the training examples of a language model.

Shapes: B blocks, T tokens in each block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tensors.pairs import TensorBatch

Starts = NDArray[np.int64]


@dataclass(frozen=True)
class BlockBatch(TensorBatch):
    """Inputs and labels of a language model, without padding.

    Attributes:
        ids: input tokens (B, T) int64.
        labels: (B, T) int64, the token after each input token; (0, T) if there is nothing to predict.
    """

    ids: Tensor
    labels: Tensor

    @property
    def source_tokens(self) -> int:
        """Number of source tokens: 0."""
        return 0

    @property
    def target_tokens(self) -> int:
        """Number of predicted tokens; the loss is divided by it."""
        return self.labels.numel()

    @property
    def num_positions(self) -> int:
        """Number of positions."""
        return self.ids.numel()

    def rows(self, first: int, end: int) -> BlockBatch:
        """Return a batch of the blocks from `first` up to `end`."""
        return BlockBatch(self.ids[first:end], self.labels[first:end])


class BlockSampler:
    """Draw the blocks of each update of an epoch from the seed and the number of the epoch alone.

    The stream is treated as a ring that is cut at another random position in each epoch, so that the edges of the
    blocks move. All blocks are full; in an epoch every token is predicted once, and fewer than T of them twice.
    """

    def __init__(self, length: int, *, block: int, rows: int, seed: int) -> None:
        """Divide a stream of `length` tokens, at least one block, evenly into updates of at most `rows` blocks."""
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
    """Make a batch of the blocks that start at these positions of the ring; the labels are the next tokens."""
    positions = (starts[:, None] + np.arange(block + 1)) % len(stream)
    tokens = torch.from_numpy(stream[positions].astype(np.int64))
    return BlockBatch(tokens[:, :-1], tokens[:, 1:])


def blank_blocks(token: int) -> BlockBatch:
    """Return a batch of one token with nothing to predict: its loss and gradients are 0."""
    return BlockBatch(torch.full((1, 1), token), torch.empty(0, 1, dtype=torch.int64))
