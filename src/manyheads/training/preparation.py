"""Tokenizers and token ids of the text of a training; both are stored in the run directory and reused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.store import TokenStore, TokenStream
from manyheads.data.training_text import Corpus, name_limit
from manyheads.errors import DataError
from manyheads.reports import Advance, Listener
from manyheads.text.interface import Encode
from manyheads.text.normalize import source_form
from manyheads.text.tokenizer import EOS, Tokenizer, TokenizerPair
from manyheads.training.initialize import Sides, initial_tokenizers
from manyheads.training.interruption import call_in_thread
from manyheads.training.task import AnyTask

_MOST_PAIRS = 1_000_000  # maximum number of pairs to learn subwords from, evenly spread over the text


def prepare_tokenizers(
    task: AnyTask, config: Config, run: RunDirectory, sides: Callable[[int | None], Sides], listener: Listener
) -> TokenizerPair:
    """Return the tokenizers of a run: stored ones if it has begun, else those of `model.init_from`, else new ones.

    `sides(n)` returns at most n source and target texts (None: all), without targets for tasks with one text. It is
    called only to train.
    """
    form = source_form if config.tokenizer.normal_form and not config.keep_space else str
    most = _MOST_PAIRS if config.tokenizer.kind in ("bpe", "unigram") else None  # a word list must be complete

    def formed_sides(most: int | None) -> Sides:
        sources, targets = sides(most)
        return list(map(form, sources)), targets

    def learn_visibly() -> TokenizerPair:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        with listener.phase("training the tokenizer"):
            return call_in_thread(lambda: task.learn_tokenizers(config, *formed_sides(most)))

    if run.exists:
        return run.tokenizers(config)
    if config.model.init_from is None:
        return learn_visibly().with_normal_forms(config)
    tokenizers = initial_tokenizers(task, config, learn_visibly, lambda: formed_sides(most), listener)
    return tokenizers.with_normal_forms(config)


def tokenise(
    config: Config,
    run: RunDirectory,
    corpus: Corpus,
    tokenizers: TokenizerPair,
    listener: Listener,
    encode: tuple[Encode, Encode] | None = None,
    *,
    max_length: int | None,
) -> TokenStore:
    """Return the token store of the run; it is made if it is missing or was made from other text.

    `encode` replaces the encoding of the tokenizers. Pairs with a side of more than `max_length` tokens are left
    out; None keeps all.
    """
    folder = run.path / "cache" / "train"
    sums = [corpus.train.sha256, tokenizers.source.sha256, tokenizers.target.sha256]
    key = _key_of([config.task, *sums, max_length])
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    source, target = encode or (tokenizers.source.encode, tokenizers.target.encode)
    phase = listener.phase("tokenizing", len(corpus.train), "pairs")
    with saving("the token ids", folder, ""), phase as advance:
        encode = (_count(source, advance), target)
        store = TokenStore.build(folder, corpus.train, encode, key=key, max_length=max_length)
    if not len(store):
        raise DataError(f"every training pair is longer than {name_limit(config)} tokens.")
    return store


def make_stream(
    config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair, listener: Listener
) -> TokenStream:
    """Return the token stream of a language model; it is made if it is missing or was made from other text."""
    folder, tokenizer = run.path / "cache" / "train", tokenizers.target
    key = _key_of([corpus.train.sha256, tokenizer.sha256, config.data.documents])
    if not TokenStream.has(folder, key):
        phase = listener.phase("tokenizing", len(corpus.train), "texts")
        with saving("the token ids", folder, ""), phase as advance:
            encode = _count(tokenizer.encode, advance)
            TokenStream.build(folder, corpus.train, encode, key=key, end=EOS, whole_files=config.whole_files)
    return TokenStream(folder)


def _count(encode: Encode, advance: Advance) -> Encode:
    """Return an encoding that calls `advance` with the number of encoded texts."""

    def encode_and_count(texts: Sequence[str]) -> list[list[int]]:
        ids = encode(texts)
        advance(len(texts))
        return ids

    return encode_and_count


def _key_of(parts: Sequence[Any]) -> str:
    """Return the SHA-256 of JSON values: the key of a cache that is made from them."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def count_ids(ids: NDArray[np.int32], tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Return the frequency of each id (V,)."""
    return np.bincount(ids, minlength=tokenizer.size)
