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


@pytest.mark.parametrize("zeroed", [True, False])
def test_updates_gradients_and_left_over_gradients_are_recorded(model: Model, zeroed: bool) -> None:
    optimizer = torch.optim.SGD([*model.embedding.parameters(), *model.output.parameters()], 0.1)
    updates = UpdateTracer.of(model)
    with updates.watch():
        for _ in range(3):
            if zeroed:
                optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    trained = {"embedding.weight", "output.weight", "output.bias"}
    assert set(updates.reached) == set(updates.changed) == trained
    assert (updates.count, updates.passes) == (3, {0: 1, 1: 1, 2: 1})
    assert updates.left_over == (set() if zeroed else trained)
    assert set(updates.rates.values()) == {0.1}


def observed(model: Model, step: Callable[[torch.optim.Optimizer], None], updates: int = 2) -> UpdateTracer:
    """Return the tracer of some updates, in which `step` calls backward() and step()."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1, weight_decay=0.5)
    tracer = UpdateTracer.of(model)
    with tracer.watch():
        for _ in range(updates):
            optimizer.zero_grad()
            step(optimizer)
    return tracer


def test_gradients_that_are_cleared_between_two_backward_passes_are_recorded(model: Model) -> None:
    def accumulated(optimizer: torch.optim.Optimizer, cleared: bool) -> None:
        for _ in range(2):
            if cleared:
                optimizer.zero_grad()
            loss_of(model).backward()
        optimizer.step()

    assert observed(model, lambda optimizer: accumulated(optimizer, False)).cleared == set()
    trained = {"embedding.weight", "output.weight", "output.bias"}
    tracer = observed(model, lambda optimizer: accumulated(optimizer, True))
    assert tracer.cleared == trained
    assert set(tracer.decays.values()) == {0.5}


@pytest.mark.parametrize("late", [True, False])
def test_every_call_that_clips_is_recorded_with_its_moment(model: Model, late: bool) -> None:
    """The function was imported by its name, before it was observed."""

    def step(optimizer: torch.optim.Optimizer) -> None:
        loss_of(model).backward()
        if not late:
            clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        if late:
            clip_grad_norm_(model.parameters(), max_norm=1e-3)

    tracer = observed(model, step)
    assert [clipping.in_time for clipping in tracer.clippings] == [not late] * 2
    assert all(clipping.before > 0.1 and clipping.after < 2e-3 for clipping in tracer.clippings)
    assert clip_grad_norm_ is torch.nn.utils.clip_grad_norm_


def test_weights_that_other_code_draws_anew_are_recorded_and_small_changes_are_not(model: Model) -> None:
    def step(optimizer: torch.optim.Optimizer) -> None:
        with torch.no_grad():
            model.embedding.weight.mul_(0.9)
        nn.init.normal_(model.output.weight)
        loss_of(model).backward()
        optimizer.step()

    assert observed(model, step).redrawn == {"output.weight"}


def test_weights_that_an_update_leaves_as_they_are_for_their_precision_are_counted(model: Model) -> None:
    model.bfloat16()

    def step(optimizer: torch.optim.Optimizer) -> None:
        optimizer.param_groups[0]["lr"] = 1e-9
        loss_of(model).backward()
        optimizer.step()

    tracer = observed(model, step, updates=1)
    assert tracer.moving == tracer.lost > 0
