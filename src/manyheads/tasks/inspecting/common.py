"""What the inspections of all tasks have in common.

Shapes: T places, V vocabulary, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import Config
from manyheads.inspection.model_parts import ModelFacts
from manyheads.inspection.parts import Near, Neighbours, Prediction, Rival, Text, Token
from manyheads.search.candidates import best_tokens
from manyheads.tasks.alignment import word_numbers
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer

__all__ = ["facts", "neighbours", "predictions", "rivals_of", "text_of", "tokens_of"]

MARKS = (PAD, BOS, EOS)
SUPPRESSED_IDS = (PAD, BOS)  # what never comes out


def facts(config: Config) -> ModelFacts:
    """The shape of the model of a run; a side that a task does not have counts 0 layers."""
    model, task = config.model, config.task
    return ModelFacts(
        task=task,
        d_model=model.d_model,
        d_ff=model.d_ff,
        num_heads=model.num_heads,
        num_encoder_layers=0 if task == "language-modeling" else model.num_encoder_layers,
        num_decoder_layers=model.num_decoder_layers if task in ("translation", "language-modeling") else 0,
        norm=model.norm,
        positions=model.positions,
    )


def tokens_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Token, ...]:
    """Tokens with the words that they belong to; marks belong to none."""
    plain = [token for token in ids if token not in MARKS]
    words = iter(word_numbers(tokenizer, plain))
    return tuple(
        Token(token, piece, None if token in MARKS else next(words))
        for token, piece in zip(ids, tokenizer.pieces(ids), strict=True)
    )


def text_of(tokenizer: Tokenizer, ids: Sequence[int], text: str, language: str) -> Text:
    """A text with its tokens, marks included."""
    plain = [token for token in ids if token not in MARKS]
    return Text(text, language, tokens_of(tokenizer, ids), tuple(tokenizer.decode(plain).split()))


def predictions(
    logits: Tensor, ids: Sequence[int], tokenizer: Tokenizer, *, rivals: int, given: int
) -> tuple[Prediction, ...]:
    """What a model thought of tokens, from its logits (T, V) at their places; the first `given` were forced."""
    log_probs = functional.log_softmax(logits.double(), -1)
    own = log_probs.gather(1, torch.tensor(ids)[:, None])
    ranks = (log_probs > own).sum(1) + 1
    entropy = -(log_probs.exp() * log_probs).sum(1)
    others = log_probs.scatter(1, torch.tensor(ids)[:, None], -torch.inf)
    pieces = tokenizer.pieces(ids)
    return tuple(
        Prediction(
            id=token,
            piece=pieces[place],
            log_probability=float(own[place]),
            probability=math.exp(float(own[place])),
            rank=int(ranks[place]),
            entropy=float(entropy[place]),
            rivals=rivals_of(others[place], tokenizer, rivals),
            forced=place < given,
        )
        for place, token in enumerate(ids)
    )


def rivals_of(log_probs: Tensor, tokenizer: Tokenizer, count: int) -> tuple[Rival, ...]:
    """The likeliest tokens that may come out, best first: (V,) float64 -> at most `count`."""
    if not count:
        return ()
    _, ids = best_tokens(log_probs[None].float(), count, SUPPRESSED_IDS)
    found = [token for token in ids[0].tolist() if log_probs[token] > -math.inf]
    values = log_probs[found].tolist()
    return tuple(
        Rival(token, piece, value, math.exp(value))
        for token, piece, value in zip(found, tokenizer.pieces(found), values, strict=True)
    )


def neighbours(
    embedding: nn.Embedding, ids: Iterable[int], tokenizer: Tokenizer, count: int
) -> tuple[Neighbours, ...]:
    """For each different token, marks aside, the nearest others by the cosine of their rows (V, D)."""
    wanted = [token for token in dict.fromkeys(ids) if token not in MARKS]
    if not count or not wanted:
        return ()
    with torch.inference_mode():
        rows = functional.normalize(embedding.weight.detach().float().cpu(), dim=1)
        cosines = rows[wanted] @ rows.T
        cosines[:, list(MARKS)] = -torch.inf
        cosines[torch.arange(len(wanted)), torch.tensor(wanted)] = -torch.inf
        values, near = cosines.topk(min(count, rows.size(0) - len(MARKS) - 1), dim=1)
    return tuple(
        Neighbours(
            token,
            tokenizer.pieces([token])[0],
            tuple(
                Near(other, piece, value)
                for other, piece, value in zip(others, tokenizer.pieces(others), cosine, strict=True)
            ),
        )
        for token, others, cosine in zip(wanted, near.tolist(), values.tolist(), strict=True)
    )
