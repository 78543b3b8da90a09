"""The updates of a run: which pairs, and their tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

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
from manyheads.training.part import Part

__all__ = ["BatchMaker", "CorpusUpdates", "PairBatches"]


class BatchMaker(Protocol):
    """How a task makes tensors of the rows of a token store.

    Attributes:
        lengths: tokens of each row that are read, and of each that are predicted, marks counted: two of (N,).
    """

    lengths: tuple[NDArray[np.int64], NDArray[np.int64]]

    def rows(self, pairs: NDArray[np.int64], dice: np.random.Generator) -> Sequence[Any]:
        """What batches are made of, of some rows of the store; chance is in the dice alone."""
        ...

    def batch(self, rows: Sequence[Any]) -> Part:
        """The tensors of some of `rows`."""
        ...

    def blank(self) -> Part:
        """A batch without anything to predict: its loss is 0, and so are its gradients."""
        ...


class PairBatches:
    """Translations as batches (`BatchMaker`)."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        self.texts = texts
        self.store = store
        self.tokenizers = tokenizers
        self.sampling = config.tokenizer.sampling > 0
        self.lengths = (store.source.lengths + 1, store.target.lengths + 1)

    def rows(self, pairs: NDArray[np.int64], dice: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Token ids of these pairs, from the store or sampled anew."""
        if not self.sampling:
            return [(self.store.source[pair], self.store.target[pair]) for pair in pairs]
        seeds = dice.integers(2**31, size=2).tolist()
        source = self.tokenizers.source.sample(self.texts.text(0, self.store.rows[pairs]), seeds[0])
        target = self.tokenizers.target.sample(self.texts.text(1, self.store.rows[pairs]), seeds[1])
        return list(zip(source, target, strict=True))

    def batch(self, rows: Sequence[tuple[Ids, Ids]]) -> Batch:
        """The tensors of teacher forcing."""
        return make_batch([source for source, _ in rows], [target for _, target in rows], pad=PAD, bos=BOS, eos=EOS)

    def blank(self) -> Batch:
        """Nothing to predict."""
        return blank_batch(pad=PAD, bos=BOS, eos=EOS)


class CorpusUpdates:
    """The updates of a run: which pairs, and their tensors; functions of seed, epoch and position alone.

    Several processes plan the same updates, and each makes only its own parts of them.
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
        """The pairs of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Part]:
        """The parts of one update that are this process's; blank ones when the pairs do not suffice for all.

        Each process has as many: those that share their weights wait for each other in every part.
        """
        rows = self.maker.rows(pairs, np.random.default_rng((self.seed, epoch, position)))
        parts = np.array_split(np.arange(len(pairs)), min(self.parts, len(pairs)))
        own, most = self.world.share(parts), -(-len(parts) // self.world.size)
        made = [self.maker.batch([rows[row] for row in part]) for part in own]
        return [*made, *(self.maker.blank() for _ in range(most - len(own)))]

    def heaviest(self) -> int:
        """The position in epoch 0 of the update with the most places, padding counted."""
        return self.epoch(0).heaviest(self.padded)

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
