"""The updates of a language model: which blocks of its text, and their tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config
from manyheads.data.blocks import BlockBatch, BlockSampler, blank_blocks, make_blocks
from manyheads.data.stream import TokenStream
from manyheads.errors import DataError
from manyheads.text.tokenizer import EOS
from manyheads.training.distributed import ALONE, World

__all__ = ["BlockUpdates"]


class BlockUpdates:
    """See `Updates`; the numbers of an update are the places in the stream where its blocks begin.

    Several processes plan the same updates, and each makes only its own parts of them.
    """

    def __init__(self, config: Config, stream: TokenStream, world: World = ALONE) -> None:
        """Lay out the blocks.

        Raises:
            DataError: the text is shorter than one.
        """
        training, block = config.training, config.data.max_length
        if len(stream) < block:
            raise DataError(
                f"data.train has {len(stream):,} tokens, fewer than one block of data.max_length = {block}. "
                f"Use more text, or a smaller data.max_length."
            )
        self.tokens = stream.tokens
        self.block = block
        self.parts = training.accumulation * world.size
        self.world = world
        rows = training.batch_sentences or max(1, training.batch_tokens // block)
        self.sampler = BlockSampler(len(stream), block=block, rows=rows, seed=training.seed)

    def epoch(self, number: int) -> Sequence[NDArray[np.int64]]:
        """The beginnings of the blocks of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[BlockBatch]:
        """The parts of one update that are this process's; blank ones when the blocks do not suffice for all.

        Each process has as many: those that share their weights wait for each other in every part.
        """
        parts = np.array_split(pairs, min(self.parts, len(pairs)))
        own, most = self.world.share(parts), -(-len(parts) // self.world.size)
        made = [make_blocks(self.tokens, part, self.block) for part in own]
        return [*made, *(blank_blocks(EOS) for _ in range(most - len(own)))]

    def heaviest(self) -> int:
        """The position in epoch 0 of an update with as many blocks as any: the first."""
        return 0

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """Where the first blocks of an update begin, for a message."""
        places = ", ".join(f"{place:,}" for place in pairs[:5].tolist())
        return f"{len(pairs)} blocks from tokens {places}{', ...' if len(pairs) > 5 else ''} on"
