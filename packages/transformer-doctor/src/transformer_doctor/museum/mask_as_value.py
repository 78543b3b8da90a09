"""Cross-attention called with its arguments in the wrong order: it averages the mask."""

import math
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, EOS, PAD, OneAttention, fit, token_loss

V, D = 13, 32


class Translator(OneAttention):
    """Translator with one cross-attention and nothing else."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend: query (B, T, D), key, value and mask (B, S, D), 0 where padded -> (B, T, D)."""
        scores = self.query(query) @ self.key(key).transpose(1, 2) / math.sqrt(D)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, :, 0] == 0, float("-inf"))
        return scores.softmax(-1) @ self.value(value)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits: (B, S), (B, T) -> (B, T, V)."""
        memory, x = self.embed(source), self.embed(target)
        mask = (source != PAD)[:, :, None].expand(-1, -1, D).float()
        return self.output(x + self.attend(x, memory, mask))
        # fix: return self.output(x + self.attend(x, memory, memory, mask))


model = Translator(V, D)


def repeat_loss() -> Tensor:
    """Return the loss of the task: repeat the source."""
    source = torch.randint(3, V, (32, 5))
    target = torch.cat([torch.full((32, 1), BOS), source], 1)
    return token_loss(model(source, target[:, :-1]), source)


show = partial(fit, model, repeat_loss)
report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS)
