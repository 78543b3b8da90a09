"""Token embeddings initialised as if they were a linear layer, beside sinusoidal positions."""

import math  # noqa: F401 (the fix needs it)
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.doctor import examine

V, D = 58_101, 16


class Encoder(nn.Module):
    """Embeddings, positions, and one layer of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(V, D)
        self.layer = nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)
        nn.init.xavier_uniform_(self.tokens.weight)
        # fix: nn.init.normal_(self.tokens.weight, std=D**-0.5 * math.sqrt(D))

    def embed(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S) -> tokens (B, S, D) and positions (S, D)."""
        tokens = self.tokens(ids)
        angles = torch.arange(ids.size(1))[:, None] / 10_000 ** (torch.arange(0, D, 2) / D)
        return tokens, torch.cat([angles.sin(), angles.cos()], -1)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, S) -> (B, S, D)."""
        tokens, positions = self.embed(ids)
        return self.layer(tokens + positions)


torch.manual_seed(0)
model = Encoder().eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """How strong the two signals are, and how much another token changes."""
    ids = torch.randint(V, (1, 12))
    tokens, positions = model.embed(ids)
    yield f"tokens     root mean square {tokens.square().mean().sqrt():.4f}"
    yield f"positions  root mean square {positions.square().mean().sqrt():.4f}"
    change = (model(ids) - model(torch.randint(V, (1, 12)))).abs().mean() / model(ids).std()
    yield f"all twelve tokens replaced: the encoder's output changes by {change:.1%} of its spread"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
