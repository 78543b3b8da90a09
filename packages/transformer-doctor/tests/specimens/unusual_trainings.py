"""Trainings of a language model whose heads, losses or positions are unusual and sound.

A training is a function that returns the arguments of `examine`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.plain_trainings import PAD, Arguments, D, V, Writer, nats, writing

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def unusual(make: Callable[[], nn.Module], loss_of: Loss) -> Arguments:
    """Return the arguments of a training; a loss is a function of the model, its inputs and the next tokens."""
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def train_step(ids: Tensor) -> float:
        model.train()
        loss = loss_of(model, ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return {**writing(), "model": model, "train_step": train_step}


class Heads(Writer):
    """Predicts the next token, and with further heads, perhaps of one output layer, the tokens after it."""

    def __init__(self, count: int = 2, *, shared: bool = False) -> None:
        super().__init__()
        self.first, self.head = self.head, nn.Identity()  # type: ignore[assignment]
        self.further = nn.ModuleList(
            nn.Sequential(nn.Linear(D, D), self.first if shared else nn.Linear(D, V)) for _ in range(count - 1)
        )

    def forward(self, ids: Tensor, *_: Any) -> Any:
        x = super().forward(ids)
        return tuple(head(x) for head in (self.first, *self.further))


def several(model: nn.Module, ids: Tensor, labels: Tensor, *, shift: int = 1) -> Tensor:
    """Return the loss of heads, of which the first predicts the tokens `shift` after its inputs."""
    text = torch.cat([ids[:, :1], labels], 1)
    losses = [
        nats(scores[:, : text.size(1) - shift - number], text[:, shift + number :][:, : scores.size(1)])
        for number, scores in enumerate(model(ids))
    ]
    return torch.stack(losses).sum()


def in_pieces(model: nn.Module, ids: Tensor, labels: Tensor, *, size: int) -> Tensor:
    """Return a loss that is summed over pieces of the text, and divided by its tokens."""
    pieces = zip(model(ids).split(size, 1), labels.split(size, 1), strict=True)
    losses = [
        functional.cross_entropy(scores.transpose(1, 2), piece, ignore_index=PAD, reduction="sum")
        for scores, piece in pieces
    ]
    return torch.stack(losses).sum() / (labels != PAD).sum()


class PlusConstant(nn.Embedding):
    """Positions to which that of one number is added, looked up before or after them."""

    def __init__(self, number: int, *, before: bool) -> None:
        super().__init__(64, D)
        self.number, self.before = number, before

    def forward(self, numbers: Tensor) -> Tensor:
        looked_up = [torch.full((numbers.numel(),), self.number), numbers]
        return sum(super(PlusConstant, self).forward(each) for each in looked_up[:: 1 if self.before else -1])


def with_places(places: nn.Module) -> Writer:
    model = Writer()
    model.places = places  # type: ignore[assignment]
    return model


def plain(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
    return nats(model(ids), labels)


SOUND: dict[str, Callable[[], Arguments]] = {
    "two heads": partial(unusual, Heads, several),
    "three heads": partial(unusual, partial(Heads, 3), several),
    "two heads of one layer": partial(unusual, partial(Heads, shared=True), several),
    "pieces of 3": partial(unusual, Writer, partial(in_pieces, size=3)),
    "pieces of 2": partial(unusual, Writer, partial(in_pieces, size=2)),
    "pieces of 4": partial(unusual, Writer, partial(in_pieces, size=4)),
    "constant place after": partial(unusual, lambda: with_places(PlusConstant(63, before=False)), plain),
    "constant place before": partial(unusual, lambda: with_places(PlusConstant(0, before=True)), plain),
    "constant place between": partial(unusual, lambda: with_places(PlusConstant(3, before=True)), plain),
}
