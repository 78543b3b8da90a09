"""Prepare tokenizers and token ids of a run; those that are stored in the run are reused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.store import Encode, TokenStore
from manyheads.errors import DataError
from manyheads.runs.corpus import ROOM_FOR_TEXT, Corpus
from manyheads.runs.initialize import initial_tokenizers
from manyheads.text.tokenizer import TokenizerPair, train_tokenizer, train_tokenizers
from manyheads.training.log import Listener

__all__ = ["prepare", "prepare_single", "tokenise"]

Sides = tuple[Sequence[str], Sequence[str]]

MOST_PAIRS = 1_000_000  # that subwords are learnt from; of more, evenly spread ones


def prepare(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> tuple[TokenizerPair, TokenStore]:
    """Return tokenizers and token ids, read from the run if they are there, else made."""

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
    key = hashlib.sha256(json.dumps([config.task, *sums, max_length]).encode()).hexdigest()
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    encode = encode or (tokenizers.source.encode, tokenizers.target.encode)
    with saving("the token ids", folder, ROOM_FOR_TEXT):
        store = TokenStore.build(folder, corpus.train, encode, key=key, max_length=max_length)
    if not len(store):
        raise DataError(f"every training pair is longer than data.max_length = {config.data.max_length} tokens.")
    return store
