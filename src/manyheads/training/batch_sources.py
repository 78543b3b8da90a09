"""The batches of every update of a training: which examples, and their tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config, DataConfig
from manyheads.data.sampler import EpochPlan, Sampler
from manyheads.data.store import TextStore, TokenStore, TokenStream
from manyheads.data.training_text import training_corpora
from manyheads.errors import DataError
from manyheads.inference.texts import encode_texts, longest_text
from manyheads.tensors.blocks import BlockSampler, blank_blocks, make_blocks
from manyheads.tensors.examples import Example, Examples, blank_examples, make_examples
from manyheads.tensors.masked import HIDDEN_SHARE, MaskedText, MaskedTexts, blank_masked, hide_tokens, make_masked
from manyheads.tensors.pairs import Batch, Ids, blank_batch, make_batch
from manyheads.text.joined_texts import cut_text
from manyheads.text.tokenizer import BOS, EOS, PAD, SPECIALS, Tokenizer, TokenizerPair
from manyheads.training.batches import MicroBatch
from manyheads.training.distributed import ALONE, World

Indices = NDArray[np.int64]


class BatchMaker(ABC):
    """Makes the batches of a task from rows of a token store.

    Attributes:
        texts, store: training text, and its token ids.
        tokenizers: tokenizers of both sides.
        sampling: whether each epoch splits the text anew (`tokenizer.sampling`).
        lengths: number of source and of target tokens of each row, begin and end symbols counted: two arrays (N,).
    """

    lengths: tuple[Indices, Indices]

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        self.texts = texts
        self.store = store
        self.tokenizers = tokenizers
        self.sampling = config.tokenizer.sampling > 0

    def epoch(self, number: int, /) -> BatchMaker:
        """Return the maker of the batches of an epoch: itself, unless the examples change with the epoch."""
        return self

    @abstractmethod
    def rows(self, pairs: Indices, rng: np.random.Generator) -> Sequence[Any]:
        """Return the examples of some rows of the store; `rng` is the only source of randomness."""

    @abstractmethod
    def batch(self, rows: Sequence[Any]) -> MicroBatch:
        """Make a batch of some examples of `rows`."""

    @abstractmethod
    def blank(self) -> MicroBatch:
        """Return a batch with nothing to predict: its loss and gradients are 0."""


class PairBatches(BatchMaker):
    """Makes batches of sentence pairs for teacher forcing."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        super().__init__(config, texts, store, tokenizers)
        parts = training_corpora(config.data)
        self.prefixes = [tokenizers.target.language_prefix(part.target) for part in parts]  # by corpus
        prefix_lengths = np.array([len(prefix) for prefix in self.prefixes])[texts.corpora[store.rows]]
        self.lengths = (store.source.lengths + 1, store.target.lengths + 1 + prefix_lengths)

    def rows(self, pairs: Indices, rng: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Return the token ids of these pairs: from the store, or a new random segmentation.

        A target begins with the symbol of its language, where the vocabulary has one.
        """
        rows = self.plain_rows(pairs, rng)
        if not any(self.prefixes):
            return rows
        corpora = self.texts.corpora[self.store.rows[pairs]].tolist()
        return [
            (source, [*self.prefixes[corpus], *target])
            for (source, target), corpus in zip(rows, corpora, strict=True)
        ]

    def plain_rows(self, pairs: Indices, rng: np.random.Generator) -> list[tuple[Ids, Ids]]:
        """Return the token ids of these pairs without the symbols of languages."""
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


class LabelledBatches(BatchMaker):
    """Makes batches of labelled texts, cut at the maximum length of the model."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        super().__init__(config, texts, store, tokenizers)
        self.with_types = config.model.token_types > 1
        self.limit = longest_text(config)
        lengths = np.minimum(store.source.lengths, self.limit) + 2
        self.lengths = (lengths, lengths)

    def rows(self, pairs: Indices, rng: np.random.Generator) -> list[Example]:
        """Return the token ids of these texts (from the store, or a new random segmentation) and their labels."""
        ids: Sequence[Any] = [self.store.source[pair] for pair in pairs]
        if self.sampling:
            tokenizer, seed = self.tokenizers.source, int(rng.integers(2**31))
            texts = self.texts.text(0, self.store.rows[pairs])
            ids = encode_texts(lambda parts: tokenizer.sample(parts, seed), texts, tokenizer.marks_between)
        return [
            Example(cut_text(row, self.limit, eos=EOS), int(self.store.target[pair][0]))
            for row, pair in zip(ids, pairs, strict=True)
        ]

    def batch(self, rows: Sequence[Example]) -> Examples:
        """Make a batch."""
        return make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)

    def blank(self) -> Examples:
        """Return a batch without labels."""
        return blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)


class MaskedBatches(BatchMaker):
    """Makes batches of masked texts, with new masks each time; a long text gives a random passage."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizers: TokenizerPair) -> None:
        super().__init__(config, texts, store, tokenizers)
        self.share = HIDDEN_SHARE
        self.limit = longest_text(config)
        lengths = np.minimum(store.target.lengths, self.limit) + 2
        self.lengths = (lengths, lengths)

    def rows(self, pairs: Indices, rng: np.random.Generator) -> list[MaskedText]:
        """Return these texts with some tokens masked; a long text gives a random passage."""
        ids: Sequence[Any] = [self.store.target[pair] for pair in pairs]
        if self.sampling:
            texts = self.texts.text(1, self.store.rows[pairs])
            ids = self.tokenizers.target.sample(texts, int(rng.integers(2**31)))
        return [self.masked(row, rng) for row in ids]

    def masked(self, ids: Any, rng: np.random.Generator) -> MaskedText:
        """Mask one text."""
        first = int(rng.integers(len(ids) - self.limit + 1)) if len(ids) > self.limit else 0
        return hide(ids[first : first + self.limit], self.share, rng, self.tokenizers.target)

    def batch(self, rows: Sequence[MaskedText]) -> MaskedTexts:
        """Make a batch."""
        return make_masked(rows, pad=PAD, bos=BOS, eos=EOS)

    def blank(self) -> MaskedTexts:
        """Return a batch without masked tokens."""
        return blank_masked(pad=PAD, bos=BOS, eos=EOS)


def hide(ids: Ids, share: float, rng: np.random.Generator, tokenizer: Tokenizer) -> MaskedText:
    """Mask tokens of a text; the mask is <unk>, unless a pre-trained vocabulary has a mask symbol."""
    return hide_tokens(ids, share, rng, mask=tokenizer.mask, others=(len(SPECIALS), tokenizer.size))


class CorpusUpdates:
    """The updates of a training: pairs and batches as functions of seed, epoch and position alone."""

    def __init__(self, config: Config, maker: BatchMaker, world: World = ALONE) -> None:
        training = config.training
        self.maker = maker
        self.parts = training.accumulation * world.size
        self.world = world
        self.seed = training.seed
        self.stages = _Stages(config, maker.epoch(0).lengths, maker.texts.corpora[maker.store.rows])
        self.names = config.data.corpus_names

    def epoch(self, number: int) -> EpochPlan:
        """Return the pairs of each update of an epoch; the last epoch of a stage may be shorter."""
        maker = self.maker.epoch(number)
        return self.stages.epoch(number, None if maker is self.maker else maker.lengths)

    def batches(self, epoch: int, position: int, pairs: Indices) -> list[MicroBatch]:
        """Make the micro-batches of one update for this process (see `_own_batches`)."""
        maker = self.maker.epoch(epoch)
        rows = maker.rows(pairs, np.random.default_rng((self.seed, epoch, position)))
        numbers = np.arange(len(pairs))
        return _own_batches(
            numbers, self.parts, self.world, lambda part: maker.batch([rows[row] for row in part]), maker.blank
        )

    def heaviest(self) -> int:
        """Return the position in epoch 0 of the update with the most positions, padding included."""
        return self.epoch(0).heaviest()

    def describe(self, pairs: Indices) -> str:
        """Describe the first lines of an update, for a message."""
        texts, rows = self.maker.texts, self.maker.store.rows[pairs[:5]]
        numbered = zip(texts.corpora[rows].tolist(), texts.lines[rows].tolist(), strict=True)
        lines = [f"{self.names[corpus]}:{line}" if len(self.names) > 1 else str(line) for corpus, line in numbered]
        return f"{len(pairs)} pairs, lines {', '.join(lines)}{', ...' if len(pairs) > 5 else ''}"


def _own_batches(
    examples: Indices,
    parts: int,
    world: World,
    make: Callable[[Indices], MicroBatch],
    blank: Callable[[], MicroBatch],
) -> list[MicroBatch]:
    """Divide the examples of an update into `parts` micro-batches, and make the share of this process.

    All processes plan the same updates and get the same number of micro-batches, because sharded training
    synchronises in every one; blank ones are added if there are not enough examples for all.
    """
    divided = np.array_split(examples, min(parts, len(examples)))
    own, most = world.share(divided), -(-len(divided) // world.size)
    return [*map(make, own), *(blank() for _ in range(most - len(own)))]


def _corpus_weights(data: DataConfig, corpora: NDArray[np.uint8]) -> Sequence[float] | None:
    """Return how often the pairs of each corpus are drawn in an epoch; None if each is drawn once.

    Of several directions, one of n pairs has a share in proportion to n ** (1 / data.temperature), and then its
    weight; at equal weights an epoch has as many pairs as the text.
    """
    if not data.pairs:
        return data.weights
    views = data.directions()
    owners = np.repeat(np.arange(len(views)), [1 + len(view.more) for view in views])  # direction of each corpus
    weights = np.array([weight for view in views for weight in view.weights or ()])
    if data.temperature != 1:
        sizes = np.bincount(owners[corpora], minlength=len(views)).astype(np.float64)
        shares = sizes ** (1 / data.temperature)
        weights *= (shares / shares.sum() * sizes.sum() / np.maximum(1, sizes))[owners]
    return None if (weights == 1).all() else [*map(float, weights)]


def _rates(weights: Sequence[float] | None, corpora: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    """Return how often each pair is drawn in an epoch, by its corpus (N,); None if each is drawn once.

    Raises:
        DataError: all rates are 0.
    """
    if weights is None or len(weights) == 1:
        return None
    rates: NDArray[np.float64] = np.array(weights, dtype=np.float64)[corpora]
    if not rates.any():
        raise DataError(
            f"data.weights = {list(weights)} leaves no pair to train with: all that have a weight are longer than "
            "data.max_length tokens. Use a larger limit, or other weights."
        )
    return rates


class _Stages:
    """The epochs of a training whose corpora have different weights in each stage (`[[training.stages]]`).

    Attributes:
        samplers: sampler of each stage; a single one without stages.
        ends: for each stage but the last, the number of the first epoch after it.
    """

    def __init__(self, config: Config, lengths: tuple[Indices, Indices], corpora: NDArray[np.uint8]) -> None:
        training, stages = config.training, config.training.stages
        weights: Sequence[Sequence[float] | None] = [stage.weights for stage in stages]
        if not stages:
            weights = [_corpus_weights(config.data, corpora)]
        self.samplers = [
            Sampler(
                *lengths,
                batch_tokens=training.batch_tokens,
                batch_sentences=training.batch_sentences,
                seed=training.seed,
                rates=_rates(stage_weights, corpora),
            )
            for stage_weights in weights
        ]
        self.steps = [stage.steps for stage in stages if stage.steps is not None]
        epochs = [-(-steps // sampler.number) for steps, sampler in zip(self.steps, self.samplers, strict=False)]
        self.ends = list(accumulate(epochs))

    def epoch(self, number: int, lengths: tuple[Indices, Indices] | None = None) -> EpochPlan:
        """Return the pairs of each update of an epoch, counted from 0 through all stages.

        `lengths` are the lengths of the pairs in this epoch, if they differ between epochs.
        """
        stage = bisect_right(self.ends, number)
        sampler = self.samplers[stage] if lengths is None else self.samplers[stage].with_lengths(*lengths)
        if stage == len(self.steps):
            return sampler.epoch(number)
        first = self.ends[stage - 1] if stage else 0
        return sampler.epoch(number, self.steps[stage] - (number - first) * sampler.number)


class BlockUpdates:
    """The updates of a language model: start positions of blocks in the token stream, and batches."""

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

    def epoch(self, number: int) -> Sequence[Indices]:
        """Return the start positions of the blocks of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, starts: Indices) -> list[MicroBatch]:
        """Make the micro-batches of one update for this process (see `_own_batches`)."""
        tokens, block = self.tokens, self.block
        return _own_batches(
            starts, self.parts, self.world, lambda part: make_blocks(tokens, part, block), lambda: blank_blocks(EOS)
        )

    def heaviest(self) -> int:
        """Return the position in epoch 0 of an update with the most blocks: the first."""
        return 0

    def describe(self, starts: Indices) -> str:
        """Describe where the first blocks of an update start, for a message."""
        positions = ", ".join(f"{start:,}" for start in starts[:5].tolist())
        return f"{len(starts)} blocks from tokens {positions}{', ...' if len(starts) > 5 else ''} on"
