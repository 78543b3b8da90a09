"""Token embeddings initialised as if they were a linear layer, beside sinusoidal positions."""

import math  # noqa: F401 (the fix needs it)
from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from transformer_doctor import examine
from transformer_doctor.museum.base import Encoder, Sinusoidal

V, D = 58_101, 16

model = Encoder(V, D, Sinusoidal(D)).eval()
nn.init.xavier_uniform_(model.tokens.weight)
# fix: nn.init.normal_(model.tokens.weight, std=D**-0.5 * math.sqrt(D))


@torch.no_grad()
def show() -> Iterator[str]:
    """Measure tokens, positions, and the change of the output when all tokens change."""
    ids = torch.randint(V, (1, 12))
    tokens, positions = model.tokens(ids), model.positions(torch.arange(ids.size(1)))
    yield f"tokens     root mean square {tokens.square().mean().sqrt():.4f}"
    yield f"positions  root mean square {positions.square().mean().sqrt():.4f}"
    change = (model(ids) - model(torch.randint(V, (1, 12)))).abs().mean() / model(ids).std()
    yield f"all twelve tokens replaced: the encoder's output changes by {change:.1%} of its spread"


report = partial(examine, model, vocab_size=V, kind="encoder", longest=64)
