"""The tracer of updates records gradients, clipping, steps of optimizers, and weights that other code changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from transformer_doctor.checks.update_tracer import UpdateTracer

V, D = 11, 4
IDS = torch.tensor([[3, 1, 4], [1, 5, 9]])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output, self.unused = nn.Embedding(V, D), nn.Linear(D, V), nn.Linear(D, D)

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(self.embedding(ids))


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model()


def loss_of(model: Model) -> Tensor:
    return functional.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten())


def observed(model: Model, step: Callable[[torch.optim.Optimizer], None], updates: int = 5) -> UpdateTracer:
    """Return the tracer of some updates, in which `step` calls backward() and step()."""
    optimizer = torch.optim.SGD([*model.embedding.parameters(), *model.output.parameters()], 0.1)
    tracer = UpdateTracer.of(model)
    with tracer.watch():
        for _ in range(updates):
            step(optimizer)
    return tracer


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("sound", None), ("never zeroed", "gradients-accumulated"), ("zeroed twice", "gradients-lost"),
        ("clipped late", "clipped-wrongly"), ("clipped to 1e-3", "clipped-wrongly"), ("redrawn", "weights-redrawn"),
    ],
)  # fmt: skip
def test_the_optimizer_of_a_step_is_found_and_watched(model: Model, way: str, name: str | None) -> None:
    """The function that clips was imported by its name, before it was observed."""

    def step(optimizer: torch.optim.Optimizer) -> None:
        if way != "never zeroed":
            optimizer.zero_grad()
        loss_of(model).backward()
        if way == "zeroed twice":
            optimizer.zero_grad()
        loss_of(model).backward()
        if way != "clipped late":
            clip_grad_norm_(model.parameters(), 1e-3 if way == "clipped to 1e-3" else 1.0)
        optimizer.step()
        if way == "clipped late":
            clip_grad_norm_(model.parameters(), max_norm=1.0)
        with torch.no_grad():
            model.embedding.weight.mul_(0.9)
        if way == "redrawn":
            nn.init.normal_(model.output.weight)

    tracer = observed(model, step)
    trained = {"embedding.weight", "output.weight", "output.bias"}
    assert set(tracer.reached) == set(tracer.changed) == trained
    assert (tracer.count, tracer.passes) == (5, dict.fromkeys(range(5), 2))
    assert set(tracer.rates.values()) == {0.1}
    assert [*tracer.told.findings] == ([] if name is None else [name])


def test_weights_that_an_update_leaves_as_they_are_for_their_precision_are_counted(model: Model) -> None:
    model.bfloat16()

    def step(optimizer: torch.optim.Optimizer) -> None:
        optimizer.param_groups[0]["lr"] = 1e-9
        loss_of(model).backward()
        optimizer.step()

    tracer = observed(model, step, updates=1)
    assert tracer.moving == tracer.lost > 0


def test_sparse_gradients_are_observed() -> None:
    embedding = nn.Embedding(V, D, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), 0.1)
    tracer = UpdateTracer.of(embedding)
    with tracer.watch():
        for _ in range(3):
            optimizer.zero_grad()
            embedding(IDS).square().sum().backward()
            optimizer.step()
    assert (tracer.reached, [*tracer.told.findings]) == ({"weight"}, [])
