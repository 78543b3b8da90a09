"""An encoder that reads padding: a sentence's result depends on its neighbours in the batch."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor import examine

PAD, V, D = 0, 13, 16


class Encoder(nn.Module):
    """Encoder of embeddings, positions and one nn.TransformerEncoderLayer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(V, D), nn.Embedding(30, D)
        self.layer = nn.TransformerEncoderLayer(D, 2, 32, batch_first=True)
        self.max_length = 30

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states: (B, S) -> (B, S, D)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        return self.layer(x)
        # fix: return self.layer(x, src_key_padding_mask=ids == PAD)


model = Encoder().eval()


def show() -> Iterator[str]:
    """Encode a sentence alone and beside longer ones."""
    alone = model(torch.tensor([[3, 4, 5]]))
    for length in (3, 6, 12):
        batch = torch.randint(3, V, (2, length))
        batch[0] = torch.tensor([3, 4, 5] + [PAD] * (length - 3))
        change = (model(batch)[:1, :3] - alone).abs().max()
        yield f"beside a sentence of {length:2} tokens its numbers differ by up to {change:.4f}"


report = partial(examine, model, vocab_size=V, pad=PAD, kind="encoder")
