"""Training steps whose loss is written in several ways, and their examination."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from specimens.planted import BOS, EOS, PAD, Trainer, Transformer
from transformer_doctor import Report, examine

MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 32}


def examine_trainer(trainer: Trainer, **further: Any) -> Report:
    options = {**MARKS, "train_step": trainer.step, "collate": trainer.collate, **further}
    return examine(trainer.model, **options)


def updated(optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    """Make an update, and return the loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


class LossStyle(Trainer):
    """A training step whose loss is written in another way."""

    def __init__(self, style: str) -> None:
        super().__init__(Transformer())
        self.style = style

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(scores, labels, ignore_index=PAD)

    def step(self, source: Tensor, target: Tensor) -> float:
        scores, labels = self.model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()
        loss = {
            "ascent": lambda: -self.loss(scores, labels),
            "twice": lambda: self.loss(scores.softmax(-1), labels),
            "third axis": lambda: functional.cross_entropy(
                scores.unflatten(0, target[:, 1:].shape).transpose(1, 2), target[:, 1:], ignore_index=PAD
            ),
            "gathered": lambda: -scores.log_softmax(-1).gather(1, labels[:, None])[labels != PAD].mean(),
            "selected": lambda: functional.cross_entropy(scores[labels != PAD], labels[labels != PAD]),
            "summed": lambda: functional.cross_entropy(scores, labels, ignore_index=PAD, reduction="sum"),
        }.get(self.style, lambda: self.loss(scores, labels))()
        self.optimizer.zero_grad()
        loss.backward()
        if self.style != "no step":
            self.optimizer.step()
        return loss.item()
