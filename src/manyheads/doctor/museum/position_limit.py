"""Learned positions that end with an IndexError, somewhere inside torch."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.doctor import examine

V, D = 13, 16


class Sinusoidal(nn.Module):
    """Positions that are computed: there is no last one."""

    def forward(self, positions: Tensor) -> Tensor:
        """(S,) -> (S, D)."""
        angles = positions[:, None] / 10_000 ** (torch.arange(0, D, 2) / D)
        return torch.cat([angles.sin(), angles.cos()], -1)


class Encoder(nn.Module):
    """Embeddings and one layer of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(V, D)
        self.positions = nn.Embedding(100, D)
        # fix: self.positions = Sinusoidal()
        self.layer = nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, S) -> (B, S, D)."""
        return self.layer(self.tokens(ids) + self.positions(torch.arange(ids.size(1))))


torch.manual_seed(0)
model = Encoder().eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """Longer and longer sentences."""
    for length in (10, 100, 101):
        try:
            yield f"{length:3} tokens: {tuple(model(torch.randint(V, (1, length))).shape)}"
        except IndexError as error:
            yield f"{length:3} tokens: IndexError: {error}"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=256)
