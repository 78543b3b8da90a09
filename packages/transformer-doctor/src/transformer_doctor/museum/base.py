"""Correct parts that several programs of the museum share.

Shapes: B batch, S source length, T target length, D model width, V vocabulary.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, BOS, EOS = 0, 1, 2
MAX_TOKENS = 30  # tokens
Rows = list[list[int]]


class Embedded(nn.Module):
    """Embeddings of tokens and of positions, and an output layer."""

    def __init__(self, vocab_size: int, width: int, padding: int | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width, padding_idx=padding)
        self.positions = nn.Embedding(MAX_TOKENS, width)
        self.output = nn.Linear(width, vocab_size)
        self.max_length = MAX_TOKENS

    def embed(self, ids: Tensor) -> Tensor:
        """Embed tokens and positions: (B, S) -> (B, S, D)."""
        return self.tokens(ids) + self.positions(torch.arange(ids.size(1)))


class Translator(Embedded):
    """nn.Transformer between embeddings and an output layer."""

    def __init__(self, vocab_size: int, width: int = 32) -> None:
        super().__init__(vocab_size, width, PAD)
        self.transformer = nn.Transformer(width, 2, 1, 1, 64, dropout=0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return logits: (B, S), (B, T) -> (B, T, V)."""
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(hidden)


class Sinusoidal(nn.Module):
    """Sinusoidal positions, without a limit of length (section 3.5 of the paper)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions: Tensor) -> Tensor:
        """Return the encoding of positions: (S,) -> (S, D)."""
        angles = positions[:, None] / 10_000 ** (torch.arange(0, self.width, 2) / self.width)
        return torch.cat([angles.sin(), angles.cos()], -1)


class Encoder(nn.Module):
    """A layer, by default one nn.TransformerEncoderLayer, on the sum of token embeddings and positions."""

    def __init__(self, vocab_size: int, width: int, positions: nn.Module, layer: nn.Module | None = None) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, width), positions
        self.layer = layer or nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)

    def embed(self, ids: Tensor) -> Tensor:
        """Embed tokens and positions: (B, S) -> (B, S, D)."""
        return self.tokens(ids) + self.positions(torch.arange(ids.size(1)))

    def forward(self, ids: Tensor) -> Tensor:
        """Return hidden states: (B, S) -> (B, S, D)."""
        return self.layer(self.embed(ids))


class OneAttention(Embedded):
    """Embeddings, the projections of one attention, and an output layer."""

    def __init__(self, vocab_size: int, width: int) -> None:
        super().__init__(vocab_size, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))


class LanguageModel(OneAttention):
    """One self-attention, written out; subclasses mask its scores."""

    def mask_scores(self, scores: Tensor, target: Tensor) -> Tensor:
        """Hide the scores of keys that a query may not attend to: (B, T, T), (B, T) -> (B, T, T)."""
        raise NotImplementedError

    def forward(self, target: Tensor) -> Tensor:
        """Return logits: (B, T) -> (B, T, V)."""
        x = self.embed(target)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.size(-1) ** 0.5
        return self.output(x + self.mask_scores(scores, target).softmax(-1) @ self.value(x))


def pad_rows(rows: Rows) -> Tensor:
    """Pad rows of ids at the end, to the length of the longest."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean loss of labels that are no padding: (B, T, V), (B, T)."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    """Make one update, and return the loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def fit(model: nn.Module, loss: Callable[[], Tensor]) -> Iterator[str]:
    """Make 100 updates on the losses of random batches, and yield some of these losses."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(1, 101):
        value = update(optimizer, loss())
        if step in (1, 50, 100):
            yield f"step {step:3}   loss {value:.3f}"
