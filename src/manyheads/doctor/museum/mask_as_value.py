"""Cross-attention called with its arguments in the wrong order: it averages the mask."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.doctor import Report, examine

PAD, BOS, EOS, V, D = 0, 1, 2, 13, 32


class Attention(nn.Module):
    """One head."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, T, D), twice (B, S, D), and what may be seen (B, T or 1, S) -> (B, T, D)."""
        scores = self.query(query) @ self.key(key).transpose(1, 2) / math.sqrt(D)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, :, 0] == 0, float("-inf"))
        return scores.softmax(-1) @ self.value(value)


class Translator(nn.Module):
    """Each target position looks at the source once; that is all."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target, self.places = (nn.Embedding(size, D) for size in (V, V, 30))
        self.cross, self.output = Attention(), nn.Linear(D, V)
        self.max_length = 30

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V)."""
        memory = self.source(source) + self.places(torch.arange(source.size(1)))
        x = self.target(target) + self.places(torch.arange(target.size(1)))
        mask = (source != PAD)[:, :, None].expand(-1, -1, D).float()
        return self.output(x + self.cross(x, memory, mask))
        # mend: return self.output(x + self.cross(x, memory, memory, mask))


torch.manual_seed(0)
model = Translator()


def show() -> Iterator[str]:
    """The task: repeat the source."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(1, 301):
        source = torch.randint(3, V, (32, 5))
        target = torch.cat([torch.full((32, 1), BOS), source], 1)
        loss = functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), source.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (1, 100, 300):
            yield f"step {step:3}   loss {loss.item():.3f}"


def examined() -> Report:
    """Ask the doctor."""
    return examine(model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
