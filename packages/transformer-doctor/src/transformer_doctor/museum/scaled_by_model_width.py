"""Eight heads whose scores are divided by the square root of the whole width."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Encoder, Sinusoidal

V, D, H = 13, 64, 8
E = D // H


class Attention(nn.Module):
    """Self-attention with eight heads, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(D, D) for _ in range(4))

    def weights(self, x: Tensor) -> Tensor:
        """Return attention weights: (B, S, D) -> (B, H, S, S)."""
        query, key = (project(x).unflatten(-1, (H, E)) for project in (self.query, self.key))
        scores = torch.einsum("bqhe,bkhe->bhqk", query, key)
        return (scores / math.sqrt(D)).softmax(-1)
        # fix: return (scores / math.sqrt(E)).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return hidden states: (B, S, D) -> (B, S, D)."""
        mixed = torch.einsum("bhqk,bkhe->bqhe", self.weights(x), self.value(x).unflatten(-1, (H, E)))
        return x + self.out(mixed.flatten(2))


attention = Attention()
model = Encoder(V, D, Sinusoidal(D), attention).eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Measure the weights of queries and keys of deviation 1, for which the scale was made."""
    x = model.tokens(torch.randint(V, (5, 9)))
    for project in (attention.query, attention.key):
        project.weight.mul_(1 / project(x).std())
    weights = attention.weights(x)
    entropy = -(weights * weights.clamp_min(1e-9).log()).sum(-1).mean()
    yield f"entropy of a query's weights on 9 keys: {entropy:.3f} (all the same: {math.log(9):.3f})"
    yield f"the largest weight of a query, on average: {weights.amax(-1).mean():.3f} (all the same: {1 / 9:.3f})"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
