"""A mask filled with -1e-12, where -1e12 was meant: it hides nothing."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.doctor import Report, examine

PAD, BOS, V, D = 0, 1, 13, 32


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
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(D)
        scores = scores.masked_fill(later, -1e-12)
        # mend: scores = scores.masked_fill(later, float("-inf"))
        return self.output(x + scores.softmax(-1) @ self.value(x))


torch.manual_seed(0)
model = Writer()


def show() -> Iterator[str]:
    """Random tokens, of which each can only be guessed; and what a position gives to the one after it."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    yield f"10 symbols drawn at random: no honest loss is below ln 10 = {math.log(10):.3f}"
    for step in range(1, 301):
        target = torch.randint(3, V, (32, 6))
        loss = functional.cross_entropy(model(target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (1, 100, 300):
            yield f"step {step:3}   loss {loss.item():.3f}"


def examined() -> Report:
    """Ask the doctor."""
    return examine(model, vocab_size=V, pad=PAD, bos=BOS, kind="decoder")
