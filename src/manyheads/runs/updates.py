"""The updates of a run: which pairs, and their tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config, DataConfig
from manyheads.data.batch import Batch, Ids, blank_batch, make_batch, next_length
from manyheads.data.sampler import EpochPlan, Sampler
from manyheads.data.store import TokenStore
from manyheads.data.texts import TextStore
from manyheads.errors import DataError
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair
from manyheads.training.distributed import ALONE, World

__all__ = ["CorpusUpdates"]


class CorpusUpdates:
    """The updates of a run: which pairs, and their tensors; functions of seed, epoch and position alone.

    Several processes plan the same updates, and each makes only its own parts of them.
    """

    def __init__(
        self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair, world: World = ALONE
    ) -> None:
        training = config.training
        self.texts = texts
        self.store = store
        self.tokenizers = tokenizers
        self.sampling = config.tokenizer.sampling > 0
        self.parts = training.accumulation * world.size
        self.world = world
        self.seed = training.seed
        self.padded: Callable[[int], int] = next_length if training.compile else int
        self.sampler = Sampler(
            store.source.lengths + 1,
            store.target.lengths + 1,
            batch_tokens=training.batch_tokens,
            batch_sentences=training.batch_sentences,
            seed=training.seed,
            rates=rates(config.data, texts.corpora[store.rows]),
        )
        self.names = [str(corpus) for corpus in (config.data.train, *config.data.more)]

    def epoch(self, number: int) -> EpochPlan:
        """The pairs of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
        """The parts of one update that are this process's; blank ones when the pairs do not suffice for all.

        Each process has as many: those that share their weights wait for each other in every part.
        """
        sources, targets = self.rows(epoch, position, pairs)
        parts = np.array_split(np.arange(len(pairs)), min(self.parts, len(pairs)))
        own, most = self.world.share(parts), -(-len(parts) // self.world.size)
        marks = {"pad": PAD, "bos": BOS, "eos": EOS}
        return [
            *(make_batch([sources[row] for row in part], [targets[row] for row in part], **marks) for part in own),
            *[blank_batch(**marks)] * (most - len(own)),
        ]

    def heaviest(self) -> int:
        """The position in epoch 0 of the update with the most places, padding counted."""
        return self.epoch(0).heaviest(self.padded)

    def rows(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> tuple[Sequence[Ids], Sequence[Ids]]:
        """Token ids of these pairs, from the store or sampled anew."""
        if not self.sampling:
            return [self.store.source[pair] for pair in pairs], [self.store.target[pair] for pair in pairs]
        seeds = np.random.default_rng((self.seed, epoch, position)).integers(2**31, size=2).tolist()
        source = self.tokenizers.source.sample(self.texts.text(0, self.store.rows[pairs]), seeds[0])
        target = self.tokenizers.target.sample(self.texts.text(1, self.store.rows[pairs]), seeds[1])
        return source, target

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """The first lines of an update, for a message."""
        rows = self.store.rows[pairs[:5]]
        places = zip(self.texts.corpora[rows].tolist(), self.texts.lines[rows].tolist(), strict=True)
        lines = [f"{self.names[corpus]}:{line}" if len(self.names) > 1 else str(line) for corpus, line in places]
        return f"{len(pairs)} pairs, lines {', '.join(lines)}{', ...' if len(pairs) > 5 else ''}"


def rates(config: DataConfig, corpora: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """How often each pair comes in an epoch, by its corpus (N,); None when each comes once.

    With a temperature T, a corpus of n pairs gets a share of n ** (1 / T), and the largest comes once.

    Raises:
        DataError: no pair ever comes.
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
