"""Schedules that wrap an optimizer are examined like schedules that are returned with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LinearLR, ReduceLROnPlateau, SequentialLR

from transformer_doctor import examine_schedule
from transformer_doctor.checks import schedules
from transformer_doctor.errors import UsageError


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_FEW_STEPS", 120)
    monkeypatch.setattr(schedules, "_MANY_STEPS", 1200)


def adam() -> Optimizer:
    return torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))], 1e-3)


class Noam:
    """The schedule of The Annotated Transformer: wraps the optimizer, and has no state_dict."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer, self.steps = optimizer, 0

    def step(self) -> None:
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = min(self.steps**-0.5, self.steps * 400**-1.5)
        self.optimizer.step()


class NoamWithState(Noam):
    def state_dict(self) -> dict[str, int]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


class NoamWithEmptyState(NoamWithState):
    def state_dict(self) -> dict[str, int]:
        return {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        pass


class Scheduled:
    """A schedule with step_and_update_lr alone, and the optimizer in a private attribute."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._inner = Noam(optimizer)

    def step_and_update_lr(self) -> None:
        self._inner.step()


class Constant:
    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def step(self) -> None:
        self._optimizer.step()


class ByEpoch(Constant):
    def step(self, epoch: int, metric: float | None = None) -> None:  # type: ignore[override]
        self._optimizer.param_groups[0]["lr"] = 0.1 / epoch


def with_optimizer(make: Callable[[Optimizer], Any]) -> Callable[[], tuple[Optimizer, Any]]:
    def both() -> tuple[Optimizer, Any]:
        optimizer = adam()
        return optimizer, make(optimizer)

    return both


@pytest.mark.parametrize("make", [lambda: Noam(adam()), lambda: Scheduled(adam()), with_optimizer(Noam)])
def test_a_wrapper_that_does_not_save_its_step_is_named(make: Callable[[], Any]) -> None:
    report = examine_schedule(make)
    assert report.names == ["schedule-without-state"]
    assert (
        "has no state_dict and load_state_dict; after 7 steps the rates continue as" in report.findings[0].evidence
    )


def test_a_wrapper_that_saves_an_empty_state_is_named() -> None:
    assert examine_schedule(lambda: NoamWithEmptyState(adam())).names == ["schedule-without-state"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: NoamWithState(adam()),
        lambda: Constant(adam()),
        lambda: ByEpoch(adam()),
        lambda: LambdaLR(adam(), lambda step: 1 / (1 + step)),
        with_optimizer(lambda optimizer: ReduceLROnPlateau(optimizer, patience=2)),
        with_optimizer(lambda optimizer: SequentialLR(optimizer, [LinearLR(optimizer), LinearLR(optimizer)], [3])),
    ],
)
def test_wrappers_that_resume_give_no_alarm(make: Callable[[], Any]) -> None:
    assert examine_schedule(make).names == []


def test_an_object_without_an_optimizer_or_a_step_is_refused() -> None:
    with pytest.raises(UsageError, match="int, in which no optimizer was found"):
        examine_schedule(lambda: 3)
    with pytest.raises(UsageError, match="dict has neither step"):
        examine_schedule(lambda: ({}, {}))


@pytest.mark.parametrize(
    ("rate", "evidence"),
    [
        (lambda step: step // 400, "the rate is 0 in the first 100 steps"),
        (lambda step: step**0.5, "the rate still grows after 1,200 steps"),
        (lambda step: abs(math.sin(step / 7)), "the rate falls and climbs again"),
        (lambda step: 1.0 if step % 2 else 0.01, "the rate falls and climbs again"),
        (lambda step: 1 - step % 10 / 10, ""),
        (lambda step: min(step / 400, 1.0), ""),
        (lambda step: min(max(step, 1) ** -0.5, step * 500**-1.5), ""),
    ],
)
def test_rates_that_stay_zero_grow_or_swing_are_named(rate: Callable[[int], float], evidence: str) -> None:
    report = examine_schedule(lambda: LambdaLR(adam(), rate))
    assert report.names == ["unusual-schedule"] * bool(evidence)
    assert all(evidence in finding.evidence for finding in report.findings)
