"""The input is cut into heads before it is projected: one small matrix serves all heads."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Sinusoidal

V, D, H = 13, 64, 8
E = D // H


class Encoder(nn.Module):
    """Self-attention with eight heads, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(V, D), Sinusoidal(D)
        self.query, self.key, self.value = (Small() for _ in range(3))
        # fix: self.query, self.key, self.value = (Whole() for _ in range(3))
        self.out = nn.Linear(D, D)

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states: (B, S) -> (B, S, D)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        scores = torch.einsum("bqhe,bkhe->bhqk", self.query(x), self.key(x)) / math.sqrt(E)
        mixed = torch.einsum("bhqk,bkhe->bqhe", scores.softmax(-1), self.value(x))
        return x + self.out(mixed.flatten(2))


class Small(nn.Linear):
    """Projection of every head by the same 8 x 8 matrix."""

    def __init__(self) -> None:
        super().__init__(E, E)

    def forward(self, x: Tensor) -> Tensor:
        """Project and cut into heads: (B, S, D) -> (B, S, H, E)."""
        return super().forward(x.unflatten(-1, (H, E)))


class Whole(nn.Linear):
    """Projection of the whole width, which is then cut into heads."""

    def __init__(self) -> None:
        super().__init__(D, D)

    def forward(self, x: Tensor) -> Tensor:
        """Project and cut into heads: (B, S, D) -> (B, S, H, E)."""
        return super().forward(x).unflatten(-1, (H, E))


model = Encoder().eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Count the parameters, and the heads that see a part of the input."""
    numbers = sum(weight.numel() for part in (model.query, model.key, model.value) for weight in part.parameters())
    yield f"numbers in the three projections of {H} heads: {numbers:,}"
    x = torch.zeros(1, 1, D)
    x[..., :E] = 1.0
    moved = (model.query(x) - model.query(torch.zeros(1, 1, D))).abs().sum(-1)[0, 0]
    yield f"input numbers 1 to {E} change the queries of {int((moved > 0).sum())} of {H} heads"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
