"""Probabilities of the next token of a language model, and how temperature, top-k and top-p change them.

Shapes: V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyheads.inference.generator import SUPPRESSED_IDS, Generator
from manyheads.search.arrays import drawing_weights
from manyheads.search.options import Sampling


@dataclass(frozen=True)
class NextToken:
    """A possible next token.

    Attributes:
        id, piece: the token.
        text: text that the token adds; "" if it adds none, as an end mark.
        probability: probability given by the model.
        share: probability to be sampled with the given options.
    """

    id: int
    piece: str
    text: str
    probability: float
    share: float


@dataclass(frozen=True)
class NextTokens:
    """The likeliest tokens, best first; `kept` is the number of tokens that can be sampled."""

    tokens: tuple[NextToken, ...]
    kept: int


def next_tokens(generator: Generator, text: str, sampling: Sampling, count: int = 20) -> NextTokens:
    """Return the likeliest tokens after a text, with their chance to be sampled by `Generator.generate`.

    Args:
        generator: the model.
        text: the text so far; it may be "".
        sampling: temperature, top_k, top_p.
        count: number of tokens to return.
    """
    (context,) = generator.contexts([text])
    tokenizer = generator.tokenizer
    with generator.evaluating():
        own = generator.stepper([context], 0).step(np.zeros(1, dtype=np.int64))  # (1, V)
    possible = own.copy()
    possible[:, list(SUPPRESSED_IDS)] = -np.inf
    weights = drawing_weights(possible, sampling)[0]
    shares = weights / weights.sum()
    order = np.argsort(-possible[0], kind="stable")[:count].tolist()
    written = tokenizer.decode(context)
    tokens = []
    for token in order:
        extended = tokenizer.decode([*context, token])
        added = extended[len(written) :] if extended.startswith(written) else ""
        (piece,) = tokenizer.pieces([token])
        tokens.append(NextToken(token, piece, added, math.exp(float(own[0, token])), float(shares[token])))
    return NextTokens(tuple(tokens), int((shares > 0).sum()))
