"""Small language models of bytes as people submit them to contests: honest ones, and cheats.

Each function returns what `referee` takes: the model, or a dictionary with its loss.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, WIDTH, HEADS, LONGEST = 256, 32, 4, 64
TRAIN = "The river carries the boats of the town to the sea, and the sea carries them home again.\n" * 40
TEST = "A lighthouse keeper writes every storm into a green book; nobody has read it for years.\n" * 6


class Transformer(nn.Module):
    """Decoder-only model of one layer."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.causal, self.max_length = causal, LONGEST

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.size(1)
        later = torch.ones(length, length, dtype=torch.bool).triu(1) & self.causal
        return self.head(self.layer(self.embed(ids) + self.positions(torch.arange(length)), src_mask=later))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.core = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.core(self.embed(ids))[0])


class CentredConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.core = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(functional.relu(self.core(self.embed(ids).transpose(1, 2))).transpose(1, 2))


class Bigram(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids)


def fit(model: nn.Module) -> nn.Module:
    """Train a model on the training text, in a few updates."""
    torch.manual_seed(1)
    text = torch.tensor(list(TRAIN.encode()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(20):
        starts = torch.randint(len(text) - 65, (4,)).tolist()
        rows = torch.stack([text[start : start + 65] for start in starts])
        loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def mean_loss(model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the usual loss of a model, the mean over all tokens but the first."""
    return lambda ids: functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def row_loss(model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a loss of each row."""
    return lambda ids: functional.cross_entropy(
        model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none"
    ).mean(1)


def with_loss(model: nn.Module, loss: Callable[..., Any] = row_loss, **options: Any) -> dict[str, Any]:
    return {"model": model, "loss": loss(model), "vocab_size": VOCABULARY, "longest": 64, **options}


def averaged(model: nn.Module) -> dict[str, Any]:
    """Return a mixture of a model and a uniform distribution: another loss, that of probabilities all the same."""

    def scores(ids: Tensor) -> Tensor:
        return (0.9 * model(ids).softmax(-1) + 0.1 / VOCABULARY).log()

    return {"model": scores, "loss": row_loss(scores), "vocab_size": VOCABULARY}


def bits_of(model: nn.Module) -> dict[str, Any]:
    loss = row_loss(model)
    return {"model": model, "loss": lambda ids: loss(ids) / math.log(2), "unit": "bits", "vocab_size": VOCABULARY}


HONEST: dict[str, Callable[[], Any]] = {
    "a model alone": lambda: {"model": Transformer(), "vocab_size": VOCABULARY},
    "bits": lambda: bits_of(Transformer()),
    "lstm": lambda: with_loss(fit(Recurrent())),
    "bigrams, one loss of all rows": lambda: with_loss(fit(Bigram()), mean_loss),
    "mixture with a uniform distribution": lambda: averaged(Transformer()),
}


def scores_without_softmax(model: nn.Module) -> dict[str, Any]:
    """Return a loss that takes the scores for log-probabilities."""
    return with_loss(model, lambda model: lambda ids: functional.nll_loss(
        model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none").mean(1))  # fmt: skip


def best_of_two(model: nn.Module) -> dict[str, Any]:
    """Return the lower of two losses at each token: no single distribution has it."""

    def loss(ids: Tensor) -> Tensor:
        losses = [
            functional.cross_entropy(scale * model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
            for scale in (1.0, -1.0)
        ]
        return torch.minimum(*losses).mean(1)

    return {"model": model, "loss": loss, "vocab_size": VOCABULARY}


def reads_ahead_in_the_loss(model: nn.Module) -> dict[str, Any]:
    """Return a loss whose scores are those of a causal model, mixed with the text read backwards."""

    def loss(ids: Tensor) -> Tensor:
        scores = model(ids)[:, :-1] + functional.one_hot(ids[:, 1:].flip(1).cummax(1).values.flip(1), VOCABULARY)
        return functional.cross_entropy(scores.transpose(1, 2), ids[:, 1:], reduction="none").mean(1)

    return {"model": model, "loss": loss, "vocab_size": VOCABULARY}


class Table(nn.Module):
    """Model that knows which byte follows each six bytes of the test text."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, data = inner, TEST.encode()
        self.table = {data[start : start + 6]: data[start + 6] for start in range(len(data) - 6)}

    def forward(self, ids: Tensor) -> Tensor:
        scores = self.inner(ids).clone()
        for row, line in enumerate(ids.tolist()):
            for end in range(6, len(line) + 1):
                following = self.table.get(bytes(line[end - 6 : end]))
                if following is not None:
                    scores[row, end - 1, following] += 20
        return scores


class ReadsFile(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: Tensor) -> Tensor:
        with open(os.devnull, "rb") as text:  # in the place of the test text
            text.read(1)
        return self.inner(ids)


CHEATS: dict[str, tuple[Callable[[], Any], str]] = {
    "look-ahead": (lambda: with_loss(Transformer(causal=False)), "sees-the-future"),
    "centred convolution": (lambda: with_loss(CentredConvolution()), "sees-the-future"),
    "look-ahead in the loss alone": (lambda: reads_ahead_in_the_loss(Transformer()), "score-not-normalised"),
    "no softmax": (lambda: scores_without_softmax(Transformer()), "score-not-normalised"),
    "best of two": (lambda: best_of_two(Transformer()), "score-not-normalised"),
    "table of the test text": (lambda: with_loss(Table(Transformer())), "test-text-known"),
    "a table, its loss not given": (
        lambda: {"model": Table(Bigram()), "vocab_size": VOCABULARY},
        "test-text-known",
    ),
    "a file that is read": (lambda: with_loss(ReadsFile(Transformer())), "test-text-known"),
    "bits called nats": (lambda: {**bits_of(Transformer()), "unit": "nats"}, "loss-differs-from-scores"),
}
