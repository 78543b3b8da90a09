"""A mask filled with -1e-12, where -1e12 was meant: it hides nothing."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, PAD, LanguageModel, fit, token_loss

V, D = 13, 32


class Writer(LanguageModel):
    """Language model with one causal self-attention."""

    def mask_scores(self, scores: Tensor, target: Tensor) -> Tensor:
        """Hide later tokens: (B, T, T), (B, T) -> (B, T, T)."""
        later = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -1e-12)
        # fix: return scores.masked_fill(later, float("-inf"))


model = Writer(V, D)


def random_loss() -> Tensor:
    """Return the loss of random tokens, which can only be guessed."""
    target = torch.randint(3, V, (32, 6))
    return token_loss(model(target[:, :-1]), target[:, 1:])


def show() -> Iterator[str]:
    """Train on random tokens; the loss shows what a position learns from the one after it."""
    yield f"10 symbols drawn at random: no honest loss is below ln 10 = {math.log(10):.3f}"
    yield from fit(model, random_loss)


report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, kind="decoder")
