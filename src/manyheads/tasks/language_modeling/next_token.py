"""Probabilities of the next token of a language model, and how temperature, top-k and top-p change them.

Shapes: V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from manyheads.decoding.language_model import held_tokens
from manyheads.search.options import Sampling
from manyheads.search.sampling import drawing_weights
from manyheads.tasks.language_modeling.generator import SUPPRESSED_IDS, Generator
from manyheads.tasks.loading import evaluating


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


@torch.inference_mode()
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
    ids = context[len(context) - held_tokens(len(context), generator.window) :]
    with evaluating(generator.model):
        logits = generator.model(torch.tensor([ids], device=generator.model.output.weight.device))[0, -1]
    own = functional.log_softmax(logits.cpu().double(), -1)[None]
    possible = own.clone()
    possible[:, list(SUPPRESSED_IDS)] = -torch.inf
    weights = drawing_weights(possible, sampling)[0]
    shares = weights / weights.sum()
    order = possible[0].sort(descending=True, stable=True).indices[:count].tolist()
    written = tokenizer.decode(context)
    tokens = []
    for token in order:
        extended = tokenizer.decode([*context, token])
        added = extended[len(written) :] if extended.startswith(written) else ""
        (piece,) = tokenizer.pieces([token])
        tokens.append(NextToken(token, piece, added, math.exp(float(own[0, token])), float(shares[token])))
    return NextTokens(tuple(tokens), int((shares > 0).sum()))
