"""From a configuration to token ids: read, filter, train the tokenizers, tokenise once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, DataConfig
from manyheads.data.batch import Batch, Ids, blank_batch, make_batch
from manyheads.data.builtin import builtin_pairs
from manyheads.data.corpus import FilterCounts, Pair, filter_pairs, read_pairs, require_pairs
from manyheads.data.hub import read_hub_pairs
from manyheads.data.locate import Split
from manyheads.data.sampler import Sampler
from manyheads.data.store import TokenStore
from manyheads.errors import DataError, SaveError
from manyheads.text.normalize import clean, normalize
from manyheads.text.tokenizer import BOS, EOS, PAD, TokenizerPair, train_tokenizers
from manyheads.training.distributed import ALONE, World
from manyheads.training.log import Listener

__all__ = ["Corpus", "CorpusUpdates", "cleaning", "fingerprint", "open_corpus", "prepare", "read_split"]


@dataclass(frozen=True)
class Corpus:
    """Training and validation text of a run.

    Attributes:
        train: normalised pairs that passed the filters.
        valid: normalised pairs with two sides.
        counts: what the filters dropped.
        sha256: fingerprint of both.
    """

    train: list[Pair]
    valid: list[Pair]
    counts: FilterCounts
    sha256: str


def read_split(config: DataConfig, split: Split) -> Iterator[Pair]:
    """The raw pairs of a split, from files, a built-in corpus, or a data set of the hub."""
    if config.dataset is None:
        return read_pairs(config, split)
    origin, _, name = config.dataset.partition(":")
    if origin == "builtin":
        return iter(builtin_pairs(name, split, source=config.source, target=config.target))
    return read_hub_pairs(config, split)


def cleaning(config: Config) -> Callable[[str], str]:
    """What is done to every text first: normalised, but words see white space as their splitter expects it."""
    return clean if config.tokenizer.kind == "words" else normalize


def held_out(config: DataConfig, split: Split, normal: Callable[[str], str]) -> list[Pair]:
    """The clean pairs of validation or test that have both sides."""
    pairs = [Pair(normal(pair.source), normal(pair.target), pair.line) for pair in read_split(config, split)]
    kept = [pair for pair in pairs if pair.source and pair.target]
    require_pairs(kept, split)
    return kept


def open_corpus(config: Config) -> Corpus:
    """Read and filter the text of a run.

    Raises:
        DataError: text is missing or cannot be used.
    """
    data, normal = config.data, cleaning(config)
    valid = held_out(data, "valid", normal)
    test = held_out(data, "test", normal) if data.test is not None and data.drop_overlap else []
    train, counts = filter_pairs(read_split(data, "train"), data, normal, [*valid, *test])
    require_pairs(train, "train", counts)
    return Corpus(train, valid, counts, fingerprint([*train, *valid]))


def fingerprint(pairs: Iterable[Pair]) -> str:
    """SHA-256 of the text of pairs, in hexadecimal."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
    return digest.hexdigest()


def prepare(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> tuple[TokenizerPair, TokenStore]:
    """Tokenizers and token ids: taken from the run where they are there, else made."""
    if run.exists:
        tokenizers = run.tokenizers(config)
    else:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        tokenizers = train_tokenizers(
            config.tokenizer,
            [pair.source for pair in corpus.train],
            [pair.target for pair in corpus.train],
            config.data.source,
            config.data.target,
        )
    return tokenizers, tokenise(config, run, corpus, tokenizers)


def tokenise(config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair) -> TokenStore:
    """The token store of the run, made when it is not there or was made of something else."""
    folder = run.path / "cache" / "train"
    sampling = config.tokenizer.sampling > 0
    made_of = [corpus.sha256, tokenizers.source.sha256, tokenizers.target.sha256, config.data.max_length, sampling]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        store = TokenStore.build(
            folder,
            corpus.train,
            (tokenizers.source.encode, tokenizers.target.encode),
            key=key,
            max_length=config.data.max_length,
            keep_texts=sampling,
        )
    except OSError as error:
        raise SaveError(
            f"the token ids could not be written to {folder}: {error.strerror or error}. "
            "Free some space, or choose another --out."
        ) from error
    if not len(store):
        raise DataError(f"every training pair is longer than data.max_length = {config.data.max_length} tokens.")
    return store


def counted(corpus: Corpus, store: TokenStore) -> FilterCounts:
    """The filters' counts, with what was too long in tokens."""
    return replace(corpus.counts, too_long=store.too_long)


class CorpusUpdates:
    """The updates of a run: which pairs, and their tensors; functions of seed, epoch and position alone.

    Several processes plan the same updates, and each makes only its own parts of them.
    """

    def __init__(self, config: Config, store: TokenStore, tokenizers: TokenizerPair, world: World = ALONE) -> None:
        training = config.training
        self.store = store
        self.tokenizers = tokenizers
        self.sampling = config.tokenizer.sampling > 0
        self.parts = training.accumulation * world.size
        self.world = world
        self.seed = training.seed
        self.sampler = Sampler(
            store.source.lengths + 1,
            store.target.lengths + 1,
            batch_tokens=training.batch_tokens,
            batch_sentences=training.batch_sentences,
            seed=training.seed,
        )

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        """The pairs of each update of an epoch."""
        return self.sampler.epoch(number)

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
        """The parts of one update that are this process's; a blank one when the pairs do not suffice for all."""
        sources, targets = self.rows(epoch, position, pairs)
        parts = np.array_split(np.arange(len(pairs)), min(self.parts, len(pairs)))
        own = self.world.share(parts)
        marks = {"pad": PAD, "bos": BOS, "eos": EOS}
        return [
            make_batch([sources[row] for row in part], [targets[row] for row in part], **marks) for part in own
        ] or [blank_batch(**marks)]

    def heaviest(self) -> int:
        """The position in epoch 0 of the update with the most places, padding counted."""
        source, target = self.sampler.lengths
        places = [len(pairs) * int(source[pairs].max() + target[pairs].max()) for pairs in self.epoch(0)]
        return int(np.argmax(places))

    def rows(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> tuple[Sequence[Ids], Sequence[Ids]]:
        """Token ids of these pairs, from the store or sampled anew."""
        if not self.sampling:
            return [self.store.source[pair] for pair in pairs], [self.store.target[pair] for pair in pairs]
        seeds = np.random.default_rng((self.seed, epoch, position)).integers(2**31, size=2).tolist()
        source = self.tokenizers.source.sample(self.store.text(0, pairs), seeds[0])
        target = self.tokenizers.target.sample(self.store.text(1, pairs), seeds[1])
        return source, target

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """The first lines of an update, for a message."""
        lines = self.store.lines[pairs[:5]].tolist()
        return f"{len(pairs)} pairs, lines {', '.join(map(str, lines))}{', ...' if len(pairs) > 5 else ''}"
