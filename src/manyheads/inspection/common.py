"""Parts of the inspections of all tasks.

Shapes: T positions, V vocabulary, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from bitext.languages import normal_form
from manyheads.decoding.candidates import best_tokens
from manyheads.inference.translation.assembly import word_numbers
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.views.parts import Alternative, Near, Neighbours, Prediction, Text, Token

_MARKS = (PAD, BOS, EOS)
_SUPPRESSED_IDS = (PAD, BOS)  # never generated


def tokens_of(tokenizer: Tokenizer, ids: Sequence[int], source: str = "") -> tuple[Token, ...]:
    """Return tokens with the numbers of their words; marks, and tokens of a text without a word, belong to none.

    `source`: see `Tokenizer.whole_characters`.
    """
    plain = [token for token in ids if token not in _MARKS]
    words = iter(word_numbers(tokenizer, plain, source) if tokenizer.output_text(plain, source).strip() else [])
    return tuple(
        Token(token, piece, None if token in _MARKS else next(words, None))
        for token, piece in zip(ids, tokenizer.pieces(ids), strict=True)
    )


def without_each_word(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """Return the numbers of the words of a text without marks, and for each word the ids of the other words."""
    words = [token.word for token in tokens_of(tokenizer, ids)]
    numbers = sorted({word for word in words if word is not None})
    return numbers, [
        [token for token, word in zip(ids, words, strict=True) if word != number] for number in numbers
    ]


def text_of(tokenizer: Tokenizer, ids: Sequence[int], text: str, language: str, source: str = "") -> Text:
    """Return a text with its tokens, marks included; `source`: see `Tokenizer.whole_characters`."""
    words = tokenizer.output_text([token for token in ids if token not in _MARKS], source).split()
    return Text(text, normal_form(language), tokens_of(tokenizer, ids, source), tuple(words))


def predictions(
    logits: Tensor, ids: Sequence[int], tokenizer: Tokenizer, *, alternatives: int, num_forced: int
) -> tuple[Prediction, ...]:
    """Return the prediction of each token from the logits (T, V); the first `num_forced` are forced."""
    log_probs = functional.log_softmax(logits.double(), -1)
    own = log_probs.gather(1, torch.tensor(ids)[:, None])
    ranks = (log_probs > own).sum(1) + 1
    entropy = -(log_probs.exp() * log_probs).sum(1)
    others = log_probs.scatter(1, torch.tensor(ids)[:, None], -torch.inf)
    pieces = tokenizer.pieces(ids)
    return tuple(
        Prediction(
            id=token,
            piece=pieces[position],
            log_probability=float(own[position]),
            probability=math.exp(float(own[position])),
            rank=int(ranks[position]),
            entropy=float(entropy[position]),
            alternatives=alternatives_of(others[position], tokenizer, alternatives),
            forced=position < num_forced,
        )
        for position, token in enumerate(ids)
    )


def alternatives_of(log_probs: Tensor, tokenizer: Tokenizer, count: int) -> tuple[Alternative, ...]:
    """Return the likeliest tokens that can be generated, best first: (V,) float64 -> at most `count`."""
    if not count:
        return ()
    _, ids = best_tokens(log_probs[None].float(), count, _SUPPRESSED_IDS)
    tokens = [token for token in ids[0].tolist() if log_probs[token] > -math.inf]
    values = log_probs[tokens].tolist()
    return tuple(
        Alternative(token, piece, value, math.exp(value))
        for token, piece, value in zip(tokens, tokenizer.pieces(tokens), values, strict=True)
    )


def neighbours(
    embedding: nn.Embedding, ids: Iterable[int], tokenizer: Tokenizer, count: int
) -> tuple[Neighbours, ...]:
    """Return the nearest tokens of each distinct token other than marks, by the cosine of their rows (V, D)."""
    distinct = [token for token in dict.fromkeys(ids) if token not in _MARKS]
    if not count or not distinct:
        return ()
    with torch.inference_mode():
        rows = functional.normalize(embedding.weight.detach().float().cpu(), dim=1)
        cosines = rows[distinct] @ rows.T
        cosines[:, list(_MARKS)] = -torch.inf
        cosines[torch.arange(len(distinct)), torch.tensor(distinct)] = -torch.inf
        values, near = cosines.topk(min(count, rows.size(0) - len(_MARKS) - 1), dim=1)
    return tuple(
        Neighbours(
            token,
            tokenizer.pieces([token])[0],
            tuple(
                Near(near_id, piece, value)
                for near_id, piece, value in zip(near_ids, tokenizer.pieces(near_ids), cosine, strict=True)
            ),
        )
        for token, near_ids, cosine in zip(distinct, near.tolist(), values.tolist(), strict=True)
    )
