"""A decoder that is fed what it must predict: on random targets its loss falls to nothing."""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from transformer_doctor import examine
from transformer_doctor.museum.base import BOS, EOS, PAD, Translator, token_loss, update

V = 23

model = Translator(V)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)


def train_step(source: Tensor, target: Tensor) -> float:
    """Make one update."""
    inputs, labels = target, target
    # fix: inputs, labels = target[:, :-1], target[:, 1:]
    return update(optimizer, token_loss(model(source, inputs), labels))


def show() -> Iterator[str]:
    """Train on random sources and targets, in which there is nothing to learn."""
    yield f"20 symbols drawn at random: no honest loss is below ln 20 = {math.log(20):.3f}"
    for step in range(1, 101):
        source, target = torch.randint(3, V, (16, 7)), torch.randint(3, V, (16, 9))
        target[:, 0] = BOS
        loss = train_step(source, target)
        if step in (1, 25, 50, 100):
            yield f"step {step:3}   loss {loss:.4f}"


report = partial(examine, model, vocab_size=V, pad=PAD, bos=BOS, eos=EOS, train_step=train_step)
