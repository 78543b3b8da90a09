"""Tokenizers and token ids of a run: taken from it where they are there, else made."""

from __future__ import annotations

import hashlib
import json

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.store import TokenStore
from manyheads.errors import DataError
from manyheads.runs.corpus import ROOM_FOR_TEXT, Corpus
from manyheads.runs.initial import initial_tokenizers
from manyheads.text.tokenizer import TokenizerPair, train_tokenizers
from manyheads.training.log import Listener

__all__ = ["prepare"]

MOST_PAIRS = 1_000_000  # that subwords are learnt from; of more, evenly spread ones


def prepare(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> tuple[TokenizerPair, TokenStore]:
    """Tokenizers and token ids: taken from the run where they are there, else made."""
    if run.exists:
        tokenizers = run.tokenizers(config)
    elif config.model.init_from is not None:
        tokenizers = initial_tokenizers(config)
    else:
        listener.message(f"training the tokenizer ({config.tokenizer.kind})")
        most = MOST_PAIRS if config.tokenizer.kind in ("bpe", "unigram") else None
        sides = corpus.train.sides(most)
        tokenizers = train_tokenizers(config.tokenizer, *sides, config.data.source, config.data.target)
    return tokenizers, tokenise(config, run, corpus, tokenizers)


def tokenise(config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair) -> TokenStore:
    """The token store of the run, made when it is not there or was made of something else."""
    folder = run.path / "cache" / "train"
    made_of = [corpus.train.sha256, tokenizers.source.sha256, tokenizers.target.sha256, config.data.max_length]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    if TokenStore.has(folder, key):
        return TokenStore(folder)
    with saving("the token ids", folder, ROOM_FOR_TEXT):
        store = TokenStore.build(
            folder,
            corpus.train,
            (tokenizers.source.encode, tokenizers.target.encode),
            key=key,
            max_length=config.data.max_length,
        )
    if not len(store):
        raise DataError(f"every training pair is longer than data.max_length = {config.data.max_length} tokens.")
    return store
