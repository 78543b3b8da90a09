"""The batches of every update of a training: which examples, and their tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config, DataConfig
from manyheads.data.batch import Batch, Ids, blank_batch, make_batch, next_length
from manyheads.data.blocks import BlockBatch, BlockSampler, blank_blocks, make_blocks
from manyheads.data.sampler import EpochPlan, Sampler
from manyheads.data.store import TokenStore
from manyheads.data.stream import TokenStream
from manyheads.data.texts import TextStore
from manyheads.errors import DataError
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.distributed import ALONE, World
from manyheads.training.micro_batch import MicroBatch

__all__ = ["BatchMaker", "BlockUpdates", "CorpusUpdates", "PairBatches"]


class BatchMaker(Protocol):
    """Makes batches from rows of a token store, in the way of a task.

    Attributes:
        lengths: number of source and of target tokens of each row, begin and end symbols counted: two arrays (N,).
    """

    lengths: tuple[NDArray[np.int64], NDArray[np.int64]]

    def rows(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> Sequence[Any]:
        """Return the examples of some rows of the store; `rng` is the only source of randomness."""
        ...

    def batch(self, rows: Sequence[Any]) -> MicroBatch:
        """Make a batch of some examples of `rows`."""
        ...

    def blank(self) -> MicroBatch:
        """Return a batch with nothing to predict: its loss and gradients are 0."""
        ...


class PairBatches:
    """Makes batches of sentence pairs (see `BatchMaker`)."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        self.texts = texts
        self.store = store
        self.tokenizers = tokenizers
        self.sampling = config.tokenizer.sampling > 0
        self.lengths = (store.source.lengths + 1, store.target.lengths + 1)

    def rows(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Return the token ids of these pairs: from the store, or a new random segmentation."""
        if not self.sampling:
            return [(self.store.source[pair], self.store.target[pair]) for pair in pairs]
        seeds = rng.integers(2**31, size=2).tolist()
        source = self.tokenizers.source.sample(self.texts.text(0, self.store.rows[pairs]), seeds[0])
        target = self.tokenizers.target.sample(self.texts.text(1, self.store.rows[pairs]), seeds[1])
        return list(zip(source, target, strict=True))

    def batch(self, rows: Sequence[tuple[Ids, Ids]]) -> Batch:
        """Make the tensors of teacher forcing."""
        return make_batch([source for source, _ in rows], [target for _, target in rows], pad=PAD, bos=BOS, eos=EOS)

    def blank(self) -> Batch:
        """Return a batch with nothing to predict."""
        return blank_batch(pad=PAD, bos=BOS, eos=EOS)


class CorpusUpdates:
    """The updates of a training: pairs and batches as functions of seed, epoch and position alone.

    With several processes, all plan the same updates, and each makes only its own micro-batches.
    """

    def __init__(
        self, config: Config, texts: TextStore, store: TokenStore, maker: BatchMaker, world: World = ALONE
    ) -> None:
        training = config.training
        self.texts = texts
        self.store = store
        self.maker = maker
        self.parts = training.accumulation * world.size
        self.world = world
        self.seed = training.seed
        self.padded: Callable[[int], int] = next_length if training.compile else int
        self.sampler = Sampler(
            *maker.lengths,
            batch_tokens=training.batch_tokens,
            batch_sentences=training.batch_sentences,
            seed=training.seed,
            rates=rates(config.data, texts.corpora[store.rows]),
        )
        self.names = [str(corpus) for corpus in (config.data.train, *config.data.more)]

    def epoch(self, number: int) -> EpochPlan:
        """Return the pairs of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[MicroBatch]:
        """Make the micro-batches of one update for this process; blank ones if there are not enough pairs for all.

        All processes get the same number, because sharded training synchronises in every micro-batch.
        """
        rows = self.maker.rows(pairs, np.random.default_rng((self.seed, epoch, position)))
        parts = np.array_split(np.arange(len(pairs)), min(self.parts, len(pairs)))
        own, most = self.world.share(parts), -(-len(parts) // self.world.size)
        made = [self.maker.batch([rows[row] for row in part]) for part in own]
        return [*made, *(self.maker.blank() for _ in range(most - len(own)))]

    def heaviest(self) -> int:
        """Return the position in epoch 0 of the update with the most positions, padding included."""
        return self.epoch(0).heaviest(self.padded)

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """Describe the first lines of an update, for a message."""
        rows = self.store.rows[pairs[:5]]
        places = zip(self.texts.corpora[rows].tolist(), self.texts.lines[rows].tolist(), strict=True)
        lines = [f"{self.names[corpus]}:{line}" if len(self.names) > 1 else str(line) for corpus, line in places]
        return f"{len(pairs)} pairs, lines {', '.join(lines)}{', ...' if len(pairs) > 5 else ''}"


def rates(config: DataConfig, corpora: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Return how often each pair comes in an epoch, by its corpus (N,); None if each comes once.

    With a temperature T, a corpus of n pairs is drawn in proportion to n ** (1 / T); the largest comes once an
    epoch.

    Raises:
        DataError: all rates are 0.
    """
    if not config.more:
        return None
    if config.weights is not None:
        given: NDArray[np.float64] = np.array(config.weights, dtype=np.float64)[corpora]
        if not given.any():
            raise DataError(
                f"data.weights = {list(config.weights)} leaves no pair to train with: all that have a weight are "
                f"longer than data.max_length = {config.max_length} tokens. Use a larger limit, or other weights."
            )
        return given
    sizes = np.maximum(1, np.bincount(corpora))
    found: NDArray[np.float64] = ((sizes / sizes.max()) ** (1 / config.temperature - 1))[corpora]
    return None if config.temperature == 1 else found


class BlockUpdates:
    """The updates of a language model: start positions of blocks in the token stream, and batches.

    With several processes, all plan the same updates, and each makes only its own micro-batches.
    """

    def __init__(self, config: Config, stream: TokenStream, world: World = ALONE) -> None:
        """Plan the blocks.

        Raises:
            DataError: the text is shorter than one block.
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
        """Return the start positions of the blocks of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[BlockBatch]:
        """Make the micro-batches of one update for this process; blank ones if there are not enough blocks for all.

        All processes get the same number, because sharded training synchronises in every micro-batch.
        """
        parts = np.array_split(pairs, min(self.parts, len(pairs)))
        own, most = self.world.share(parts), -(-len(parts) // self.world.size)
        made = [make_blocks(self.tokens, part, self.block) for part in own]
        return [*made, *(blank_blocks(EOS) for _ in range(most - len(own)))]

    def heaviest(self) -> int:
        """Return the position in epoch 0 of an update with the most blocks: the first."""
        return 0

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """Describe where the first blocks of an update start, for a message."""
        places = ", ".join(f"{place:,}" for place in pairs[:5].tolist())
        return f"{len(pairs)} blocks from tokens {places}{', ...' if len(pairs) > 5 else ''} on"
