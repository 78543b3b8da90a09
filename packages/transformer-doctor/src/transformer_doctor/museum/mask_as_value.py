"""Cross-attention called with its arguments in the wrong order: it averages the mask."""

import math
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, EOS, PAD, fit, token_loss

V, D = 13, 32


class Attention(nn.Module):
    """Attention with one head."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: query (B, T, D), key, value and mask (B, S, D), 0 where padded -> (B, T, D)."""
        scores = self.query(query) @ self.key(key).transpose(1, 2) / math.sqrt(D)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, :, 0] == 0, float("-inf"))
        return scores.softmax(-1) @ self.value(value)


class Translator(nn.Module):
    """Translator with one cross-attention and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target, self.positions = (nn.Embedding(size, D) for size in (V, V, 30))
        self.cross, self.output = Attention(), nn.Linear(D, V)
        self.max_length = 30

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits: (B, S), (B, T) -> (B, T, V)."""
        memory = self.source(source) + self.positions(torch.arange(source.size(1)))
        x = self.target(target) + self.positions(torch.arange(target.size(1)))
        mask = (source != PAD)[:, :, None].expand(-1, -1, D).float()
        return self.output(x + self.cross(x, memory, mask))
        # fix: return self.output(x + self.cross(x, memory, memory, mask))


model = Translator()


def repeat_loss() -> Tensor:
    """Return the loss of the task: repeat the source."""
    source = torch.randint(3, V, (32, 5))
    target = torch.cat([torch.full((32, 1), BOS), source], 1)
    return token_loss(model(source, target[:, :-1]), source)


show = partial(fit, model, repeat_loss)
report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
