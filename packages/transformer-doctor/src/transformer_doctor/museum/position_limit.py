"""Learned positions that end with an IndexError, somewhere inside torch."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Encoder, Sinusoidal  # noqa: F401 (the fix needs Sinusoidal)

V, D = 13, 16

positions = nn.Embedding(100, D)
# fix: positions = Sinusoidal(D)
model = Encoder(V, D, positions).eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Encode longer and longer sentences."""
    for length in (10, 100, 101):
        try:
            yield f"{length:3} tokens: {tuple(model(torch.randint(V, (1, length))).shape)}"
        except IndexError as error:
            yield f"{length:3} tokens: IndexError: {error}"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=256)
