"""A decoder whose padding mask covers rows instead of columns."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from manyheads.doctor import Report, examine

PAD, BOS, V, D = 0, 1, 13, 16


class Writer(nn.Module):
    """Causal self-attention, once."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(30, D)
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))
        self.output = nn.Linear(D, V)
        self.max_length = 30

    def forward(self, target: Tensor) -> Tensor:
        """(B, T) -> (B, T, V)."""
        length = target.size(1)
        x = self.tokens(target) + self.places(torch.arange(length))
        real = (target != PAD)[:, :, None]
        # mend: real = (target != PAD)[:, None, :]
        mask = real & torch.ones(length, length, dtype=torch.bool).tril()
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(D)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return self.output(x + scores.softmax(-1) @ self.value(x))


torch.manual_seed(0)
model = Writer().eval()


@torch.no_grad()
def show() -> Iterator[str]:
    """The same three positions, then two endings."""
    first, second = torch.tensor([[BOS, 5, PAD, 7, 8]]), torch.tensor([[BOS, 5, PAD, 9, 4]])
    change = (model(first) - model(second)).abs().amax(-1)[0]
    yield f"target one     {first[0].tolist()}"
    yield f"target two     {second[0].tolist()}"
    yield "scores differ  " + "  ".join(f"{value:.3f}" for value in change.tolist())


def examined() -> Report:
    """Ask the doctor."""
    return examine(model, vocab_size=V, pad=PAD, bos=BOS, kind="decoder")
