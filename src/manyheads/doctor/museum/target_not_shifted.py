"""A decoder that is fed what it must predict: on random targets its loss falls to nothing."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.doctor import Report, examine

PAD, BOS, EOS, V, D = 0, 1, 2, 23, 32


class Translator(nn.Module):
    """nn.Transformer between embeddings and an output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(30, D)
        self.transformer = nn.Transformer(D, 2, 1, 1, 64, dropout=0.0, batch_first=True)
        self.output = nn.Linear(D, V)
        self.max_length = 30

    def embed(self, ids: Tensor) -> Tensor:
        """(B, S) -> (B, S, D)."""
        return self.tokens(ids) + self.places(torch.arange(ids.size(1)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, S), (B, T) -> (B, T, V)."""
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(hidden)


torch.manual_seed(0)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)


def train_step(source: Tensor, target: Tensor) -> float:
    """One update."""
    inputs, labels = target, target
    # mend: inputs, labels = target[:, :-1], target[:, 1:]
    loss = functional.cross_entropy(model(source, inputs).flatten(0, 1), labels.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def show() -> Iterator[str]:
    """Sources and targets are random and have nothing to do with each other: there is nothing to learn."""
    yield f"20 symbols drawn at random: no honest loss is below ln 20 = {math.log(20):.3f}"
    for step in range(1, 201):
        source, target = torch.randint(3, V, (16, 7)), torch.randint(3, V, (16, 9))
        target[:, 0] = BOS
        loss = train_step(source, target)
        if step in (1, 50, 100, 200):
            yield f"step {step:3}   loss {loss:.4f}"


def examined() -> Report:
    """Ask the doctor."""
    return examine(model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS, train_step=train_step)
