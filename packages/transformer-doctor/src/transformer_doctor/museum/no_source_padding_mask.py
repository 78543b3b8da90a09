"""An encoder that reads padding: a sentence's result depends on its neighbours in the batch."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import PAD, Encoder, Sinusoidal

V, D = 13, 16


class Reader(Encoder):
    """Encoder of embeddings, positions and one nn.TransformerEncoderLayer."""

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states: (B, S) -> (B, S, D)."""
        return self.layer(self.embed(ids))
        # fix: return self.layer(self.embed(ids), src_key_padding_mask=ids == PAD)


model = Reader(V, D, Sinusoidal(D)).eval()


def show() -> Iterator[str]:
    """Encode a sentence alone and beside longer ones."""
    alone = model(torch.tensor([[3, 4, 5]]))
    for length in (3, 6, 12):
        batch = torch.randint(3, V, (2, length))
        batch[0] = torch.tensor([3, 4, 5] + [PAD] * (length - 3))
        change = (model(batch)[:1, :3] - alone).abs().max()
        yield f"beside a sentence of {length:2} tokens its numbers differ by up to {change:.4f}"


report = partial(examine, model, vocab_size=V, pad=PAD, kind="encoder", longest=64)
