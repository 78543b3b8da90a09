"""What a language model may write next, and how temperature, top-k and top-p change that.

Shapes: V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from manyheads.search.options import Sampling
from manyheads.search.sampling import drawing_weights
from manyheads.tasks.language_modeling import SUPPRESSED_IDS, Generator

__all__ = ["NextToken", "NextTokens", "next_tokens"]


@dataclass(frozen=True)
class NextToken:
    """A token that may come next.

    Attributes:
        id, piece: the token.
        text: what it adds to the text; "" where that cannot be told, as of an end mark.
        probability: the model's own.
        share: the chance that it is drawn with the settings that were asked for.
    """

    id: int
    piece: str
    text: str
    probability: float
    share: float


@dataclass(frozen=True)
class NextTokens:
    """The likeliest tokens, best first; `kept` is how many can be drawn at all."""

    tokens: tuple[NextToken, ...]
    kept: int


@torch.inference_mode()
def next_tokens(generator: Generator, text: str, sampling: Sampling, count: int = 20) -> NextTokens:
    """What may come after a text; tokens are drawn exactly as `Generator.generate` does it.

    Args:
        generator: the model.
        text: what was written so far; "" is the beginning.
        sampling: temperature, top_k, top_p.
        count: how many tokens are told.
    """
    (context,) = generator.contexts([text])
    tokenizer = generator.tokenizer
    ids = context[-generator.window :]
    with generator.evaluating():
        logits = generator.model(torch.tensor([ids], device=generator.model.output.weight.device))[0, -1]
    own = functional.log_softmax(logits.cpu().double(), -1)[None]
    heard = own.clone()
    heard[:, list(SUPPRESSED_IDS)] = -torch.inf
    weights = drawing_weights(heard, sampling)[0]
    shares = weights / weights.sum()
    order = heard[0].sort(descending=True, stable=True).indices[:count].tolist()
    written = tokenizer.decode(context)
    found = []
    for token in order:
        whole = tokenizer.decode([*context, token])
        added = whole[len(written) :] if whole.startswith(written) else ""
        (piece,) = tokenizer.pieces([token])
        found.append(NextToken(token, piece, added, math.exp(float(own[0, token])), float(shares[token])))
    return NextTokens(tuple(found), int((shares > 0).sum()))
