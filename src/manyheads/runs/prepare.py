"""Prepare tokenizers and token ids of a run, which are stored and reused; the interface of a training task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.store import Encode, TokenStore, TokenStream
from manyheads.errors import DataError
from manyheads.model.transformer import Transformer
from manyheads.runs.corpus import NO_SPACE, Corpus
from manyheads.runs.initialize import Sides, initial_tokenizers
from manyheads.text.tokenizer import EOS, TokenizerPair, train_tokenizer, train_tokenizers
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import World
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.progress import Progress

__all__ = ["TrainingTask", "make_stream", "prepare", "prepare_single", "tokenise"]

MOST_PAIRS = 1_000_000  # from which subwords are learnt; of more, evenly spread ones


@dataclass(frozen=True)
class TrainingTask:
    """A task to train, with text, vocabularies and token ids.

    Attributes:
        config: configuration of the run.
        corpus: text of the run.
        tokenizers: tokenizers of both sides; twice the same for tasks other than translation.
        store: token ids of the training text; a `TokenStream` for language modelling.
        model: builds a new model on the CPU.
        objective: returns a model with its loss.
        updates: returns the batches of this process.
        validation: returns the validation of a model, a function of the step.
        card: returns the model card of the finished run.
        vocabulary: description of the vocabulary sizes, for a message.
        too_long: number of training examples left out because they have too many tokens.
        classes: classes of a classifier, in the order of its outputs.
        documents: returns further JSON documents of the run directory, by file name.
    """

    config: Config
    corpus: Corpus
    tokenizers: TokenizerPair
    store: TokenStore | TokenStream
    model: Callable[[], Transformer]
    objective: Callable[[Any], Objective]
    updates: Callable[[World], BatchSource]
    validation: Callable[[Any, World], Callable[[int], ValidationReport]]
    card: Callable[[Progress], str]
    vocabulary: str
    too_long: int = 0
    classes: tuple[str, ...] = ()
    documents: Callable[[], Mapping[str, Mapping[str, Any]]] = dict

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files that a run directory has before the first step."""
        run.begin(self.config, self.tokenizers, environment, self.documents())


def prepare(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> tuple[TokenizerPair, TokenStore]:
    """Return tokenizers and token ids of both sides, read from the run if they are there, else made."""

    def sides() -> Sides:
        return corpus.train.sides(most_texts(config))

    def learn() -> TokenizerPair:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        return train_tokenizers(config.tokenizer, *sides(), *config.languages)

    tokenizers = begun_tokenizers(config, run, learn, sides, listener)
    return tokenizers, tokenise(config, run, corpus, tokenizers, max_length=config.data.max_length)


def prepare_single(
    config: Config, run: RunDirectory, texts: Callable[[int | None], Sequence[str]], listener: Listener
) -> TokenizerPair:
    """Return the only tokenizer of a task with one language, read from the run if it is there, else trained.

    Args:
        config: configuration of the run.
        run: run directory.
        texts: returns at most so many training texts (None: all); called only to train.
        listener: receives messages.
    """

    def sides() -> Sides:
        return texts(most_texts(config)), ()

    def learn() -> TokenizerPair:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        tokenizer = train_tokenizer(config.tokenizer, sides()[0], config.data.language)
        return TokenizerPair(tokenizer, tokenizer, joint=True)

    return begun_tokenizers(config, run, learn, sides, listener)


def begun_tokenizers(
    config: Config,
    run: RunDirectory,
    learn: Callable[[], TokenizerPair],
    sides: Callable[[], Sides],
    listener: Listener,
) -> TokenizerPair:
    """Return the tokenizers of the run if it has begun, else those of `model.init_from`, else new ones."""
    if run.exists:
        return run.tokenizers(config)
    if config.model.init_from is not None:
        return initial_tokenizers(config, learn, sides, listener)
    return learn()


def most_texts(config: Config) -> int | None:
    """Return the number of texts to train a tokenizer on; None (all) for word lists, which must be complete."""
    return MOST_PAIRS if config.tokenizer.kind in ("bpe", "unigram") else None


def tokenise(
    config: Config,
    run: RunDirectory,
    corpus: Corpus,
    tokenizers: TokenizerPair,
    encode: tuple[Encode, Encode] | None = None,
    *,
    max_length: int | None,
) -> TokenStore:
    """Return the token store of the run; it is made if it is missing or was made from other text.

    Args:
        config: configuration of the run.
        run: run directory.
        corpus: text of the run.
        tokenizers: tokenizers of both sides.
        encode: function from text to ids, if the task needs another than the tokenizers'.
        max_length: maximum number of tokens a side; longer pairs are left out. None keeps all.
    """
    folder = run.path / "cache" / "train"
    sums = [corpus.train.sha256, tokenizers.source.sha256, tokenizers.target.sha256]
    key = key_of([config.task, *sums, max_length])
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    encode = encode or (tokenizers.source.encode, tokenizers.target.encode)
    with saving("the token ids", folder, NO_SPACE):
        store = TokenStore.build(folder, corpus.train, encode, key=key, max_length=max_length)
    if not len(store):
        raise DataError(f"every training pair is longer than data.max_length = {config.data.max_length} tokens.")
    return store


def make_stream(config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair) -> TokenStream:
    """Return the token stream of a language model; it is made if it is missing or was made from other text."""
    folder, tokenizer = run.path / "cache" / "train", tokenizers.target
    key = key_of([corpus.train.sha256, tokenizer.sha256, config.data.documents])
    if not TokenStream.has(folder, key):
        with saving("the token ids", folder, NO_SPACE):
            TokenStream.build(
                folder, corpus.train, tokenizer.encode, key=key, end=EOS, whole_files=config.whole_files
            )
    return TokenStream(folder)


def key_of(parts: Sequence[Any]) -> str:
    """Return the SHA-256 of JSON values: the key of a cache that is made from them."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
