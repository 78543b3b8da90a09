"""Examine whether a learning-rate schedule continues where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.report import Report, make_report
from manyheads.errors import UsageError

__all__ = ["examine_schedule"]

BEFORE, AFTER = 7, 5  # steps before and after the interruption


def examine_schedule(make: Callable[[], tuple[Optimizer, Any]]) -> Report:
    """Examine a schedule (invariant J): N steps, saved and loaded into a new one, then the same rates as without.

    Args:
        make: function that returns a new optimizer and its schedule, an object with step(); called twice.

    Raises:
        UsageError: its step() wants an argument.
    """
    optimizer, schedule = make()
    rates(optimizer, schedule, BEFORE)
    asked = ["the schedule continues where it stopped"]
    if not (hasattr(schedule, "state_dict") and hasattr(schedule, "load_state_dict")):
        evidence = f"{type(schedule).__name__} has no state_dict and load_state_dict"
        return make_report([model_finding("schedule-without-state", evidence)], asked)
    state = schedule.state_dict(), optimizer.state_dict()
    uninterrupted = rates(optimizer, schedule, AFTER)
    new_optimizer, new_schedule = make()
    new_schedule.load_state_dict(state[0])
    new_optimizer.load_state_dict(state[1])
    resumed = rates(new_optimizer, new_schedule, AFTER)
    if uninterrupted == resumed:
        return make_report([], asked)
    evidence = (
        f"after {BEFORE} steps the rates continue as {first_rates(uninterrupted)}; saved and loaded they are "
        f"{first_rates(resumed)}"
    )
    return make_report([model_finding("schedule-without-state", evidence)], asked)


def rates(optimizer: Optimizer, schedule: Any, steps: int) -> list[float]:
    """Return the learning rate after each of a number of steps."""
    learning_rates = []
    for _ in range(steps):
        optimizer.step()
        try:
            schedule.step()
        except TypeError as error:
            raise UsageError(
                f"{type(schedule).__name__}.step() raised TypeError: {error}. Where it wants a loss, give an "
                "object with step(), state_dict() and load_state_dict() that passes one on."
            ) from error
        learning_rates.append(float(optimizer.param_groups[0]["lr"]))
    return learning_rates


def first_rates(values: list[float]) -> str:
    """Return the first three rates as text."""
    return ", ".join(f"{value:.3g}" for value in values[:3]) + ", ..."
