"""The input is cut into heads before it is projected: one small matrix serves all heads."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Encoder, Sinusoidal

V, D, H = 13, 64, 8
E = D // H


def projection() -> nn.Module:
    """Project and cut into heads: (B, S, D) -> (B, S, H, E)."""
    return nn.Sequential(nn.Unflatten(-1, (H, E)), nn.Linear(E, E))
    # fix: return nn.Sequential(nn.Linear(D, D), nn.Unflatten(-1, (H, E)))


class Attention(nn.Module):
    """Self-attention with eight heads, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (projection() for _ in range(3))
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        """Return hidden states: (B, S, D) -> (B, S, D)."""
        scores = torch.einsum("bqhe,bkhe->bhqk", self.query(x), self.key(x)) / math.sqrt(E)
        mixed = torch.einsum("bhqk,bkhe->bqhe", scores.softmax(-1), self.value(x))
        return x + self.out(mixed.flatten(2))


attention = Attention()
model = Encoder(V, D, Sinusoidal(D), attention).eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Count the parameters, and the heads that see a part of the input."""
    numbers = sum(
        weight.numel() for part in (attention.query, attention.key, attention.value) for weight in part.parameters()
    )
    yield f"numbers in the three projections of {H} heads: {numbers:,}"
    x = torch.zeros(1, 1, D)
    x[..., :E] = 1.0
    moved = (attention.query(x) - attention.query(torch.zeros(1, 1, D))).abs().sum(-1)[0, 0]
    yield f"input numbers 1 to {E} change the queries of {int((moved > 0).sum())} of {H} heads"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
