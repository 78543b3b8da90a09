"""Dropout after the norm: in training, a part of every token is gone, layer after layer."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Encoder, Sinusoidal

V, D = 13, 64


class Layer(nn.Module):
    """Post-norm layer: self-attention and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(D, 4, batch_first=True)
        self.feed_forward = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(D), nn.LayerNorm(D), nn.Dropout(0.1)

    def around(self, x: Tensor, output: Tensor, norm: nn.LayerNorm) -> Tensor:
        """Add the sublayer's output to its input."""
        return self.dropout(norm(x + output))
        # fix: return norm(x + self.dropout(output))

    def forward(self, x: Tensor) -> Tensor:
        """Return hidden states: (B, S, D) -> (B, S, D)."""
        x = self.around(x, self.attention(x, x, x)[0], self.norm1)
        return self.around(x, self.feed_forward(x), self.norm2)


model = Encoder(V, D, Sinusoidal(D), nn.Sequential(*(Layer() for _ in range(6))))


@torch.no_grad()
def show() -> Iterator[str]:
    """Encode the same sentences twice in training mode, and compare the outputs."""
    model.train()
    ids = torch.randint(V, (64, 9))
    first, second = model(ids), model(ids)
    yield f"numbers of the output that are zero: {(first == 0).float().mean():.1%}"
    agreement = nn.functional.cosine_similarity(first.flatten(1), second.flatten(1)).mean()
    yield f"agreement of two passes over the same sentences (cosine): {agreement:.3f}"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
