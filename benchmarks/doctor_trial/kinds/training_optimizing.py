"""Loops with unusual ways to make an update, to watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from benchmarks.doctor_trial.kinds.training_models import PAD, TinyGPT, TinyLlama, texts
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import lr_scheduler, swa_utils

Updates = Iterator[Any]


def nats(model: nn.Module, ids: Tensor) -> Tensor:
    scores = model(ids[:, :-1])
    scores = scores[0] if isinstance(scores, tuple) else scores.logits
    return functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)


def sharpness() -> Updates:
    """Take each gradient at a point uphill of the weights (SAM), after a first pass that finds it."""
    torch.manual_seed(50)
    model = TinyGPT(layers=1, dropout=0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        optimizer.zero_grad()
        nats(model, ids).backward()
        weights = [weight for weight in model.parameters() if weight.grad is not None]
        norm = torch.stack([weight.grad.norm() for weight in weights]).norm()  # type: ignore[union-attr]
        moves = [weight.grad * (0.05 / (norm + 1e-12)) for weight in weights]  # type: ignore[operator]
        with torch.no_grad():
            for weight, move in zip(weights, moves, strict=True):
                weight.add_(move)
        optimizer.zero_grad()
        nats(model, ids).backward()
        with torch.no_grad():
            for weight, move in zip(weights, moves, strict=True):
                weight.sub_(move)
        optimizer.step()
        yield


def lookahead() -> Updates:
    """Pull the weights back towards slow ones every five updates."""
    torch.manual_seed(51)
    model = TinyLlama(layers=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    slow = [weight.detach().clone() for weight in model.parameters()]
    yield model, optimizer, {"pad": PAD}
    for step in range(1, 10_000):
        loss = nats(model, texts(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            with torch.no_grad():
                for kept, weight in zip(slow, model.parameters(), strict=True):
                    kept.lerp_(weight, 0.5)
                    weight.copy_(kept)
        yield


def closure() -> Updates:
    """Let LBFGS evaluate the loss several times in a step."""
    torch.manual_seed(52)
    model = TinyGPT(layers=1, dropout=0.0)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3, history_size=4)
    yield model, optimizer, {"pad": PAD}

    def evaluate(ids: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nats(model, ids)
        loss.backward()
        return loss

    for step in range(10_000):
        ids = texts(step, 24)
        optimizer.step(lambda ids=ids: evaluate(ids))  # type: ignore[misc]
        yield


class Orthogonal(torch.optim.Optimizer):
    """Momentum whose matrices are made orthogonal by Newton and Schulz (Muon)."""

    def __init__(self, weights: Any, lr: float = 0.02, momentum: float = 0.9) -> None:
        super().__init__(weights, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.mul_(group["momentum"]).add_(weight.grad)
                x = weight.grad + group["momentum"] * mean
                wide = x.size(0) <= x.size(1)
                x = x if wide else x.T
                x = x / (x.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                weight.sub_(group["lr"] * (x if wide else x.T))


def orthogonal() -> Updates:
    """Train the matrices of layers with Muon, and all others with AdamW."""
    torch.manual_seed(53)
    model = TinyLlama(layers=1)
    matrices = [weight for weight in model.layers.parameters() if weight.dim() == 2]
    named = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in named]
    muon, adam = Orthogonal(matrices), torch.optim.AdamW(others, 3e-3)
    yield model, [muon, adam], {"pad": PAD}
    for step in range(10_000):
        nats(model, texts(step)).backward()
        muon.step()
        adam.step()
        muon.zero_grad()
        adam.zero_grad()
        yield


def stochastic_average() -> Updates:
    """Average the weights of the last updates at a constant rate (SWA)."""
    torch.manual_seed(54)
    model = TinyGPT(layers=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=6)
    average, constant = swa_utils.AveragedModel(model), swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        loss = nats(model, texts(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= 12:
            average.update_parameters(model)
            constant.step()
        else:
            schedule.step()
        yield


def planned() -> Updates:
    """Follow a plan: eight updates of warm-up, and then the inverse square root."""
    torch.manual_seed(55)
    model = TinyLlama(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    factor = lambda step: min((step + 1) / 8, (8 / (step + 1)) ** 0.5)  # noqa: E731
    scheduler = lr_scheduler.LambdaLR(optimizer, factor)
    yield model, optimizer, {"pad": PAD, "plan": lambda update: 4e-3 * factor(update - 1)}
    for step in range(10_000):
        loss = nats(model, texts(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        yield


def penalty() -> Updates:
    """Add the square of the gradient at the embedded words to the loss, which needs a second derivative."""
    torch.manual_seed(56)
    model = TinyLlama(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        ids = texts(step)
        embedded = model.embed_tokens(ids[:, :-1])
        with sdpa_kernel(SDPBackend.MATH):
            scores = model(ids, inputs_embeds=embedded).logits
            loss = functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)
            (slope,) = torch.autograd.grad(loss, embedded, create_graph=True)
            loss = loss + 0.1 * slope.square().sum()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        yield


def noisy() -> Updates:
    """Add noise to embedded words in training (NEFTune), by a hook of the embedding."""
    torch.manual_seed(57)
    model = TinyLlama(layers=1)

    def add_noise(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        limit = 5.0 / (output.size(1) * output.size(2)) ** 0.5
        return output + torch.empty_like(output).uniform_(-limit, limit) if module.training else output

    model.embed_tokens.register_forward_hook(add_noise)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    yield model, optimizer, {"pad": PAD}
    model.train()
    for step in range(10_000):
        loss = nats(model, texts(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def one_batch() -> Updates:
    """Train on one batch again and again, to see whether the model can learn it."""
    torch.manual_seed(58)
    model = TinyGPT(layers=1, dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ids = texts(1)
    yield model, optimizer, {"pad": PAD, "repeats": True}
    for _ in range(10_000):
        loss = nats(model, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def clipped() -> Updates:
    """Clip to a small norm, with a large rate of plain SGD that needs it."""
    torch.manual_seed(59)
    model = TinyGPT(layers=1, dropout=0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=6.0)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        loss = nats(model, texts(step))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        yield


def single_rows() -> Updates:
    """Train on one row at a time, eight of them for each update, each divided by eight."""
    torch.manual_seed(60)
    model = TinyGPT(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, amsgrad=True)
    yield model, optimizer, {"pad": PAD}
    for step in range(10_000):
        for number in range(8):
            ids = texts(8 * step + number, 1, longest=12)
            (nats(model, ids) / 8).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield
