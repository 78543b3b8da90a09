"""Examine whether a learning-rate schedule continues where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from torch.optim import Optimizer

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.report import Report, make_report
from manyheads.errors import UsageError

__all__ = ["examine_schedule"]

BEFORE, AFTER = 7, 5  # steps before and after the interruption


class Schedule(Protocol):
    """Learning-rate schedule."""

    def step(self) -> Any:
        """Set the rate of the next update."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """Object whose state can be saved."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Restore a state."""
        ...


def examine_schedule(make: Callable[[], tuple[Optimizer, Schedule]]) -> Report:
    """Examine a schedule (invariant J): N steps, saved and loaded into a new one, then the same rates as without.

    Args:
        make: a new optimizer and its schedule; called twice.

    Raises:
        UsageError: its step() wants an argument.
    """
    optimizer, schedule = make()
    rates(optimizer, schedule, BEFORE)
    asked = ["the schedule goes on where it stopped"]
    if not isinstance(schedule, Stateful):
        evidence = f"{type(schedule).__name__} has no state_dict and load_state_dict"
        return make_report([model_finding("schedule-without-state", evidence)], asked)
    state = schedule.state_dict(), optimizer.state_dict()
    going_on = rates(optimizer, schedule, AFTER)
    new_optimizer, new_schedule = make()
    assert isinstance(new_schedule, Stateful)
    new_schedule.load_state_dict(state[0])
    new_optimizer.load_state_dict(state[1])
    resumed = rates(new_optimizer, new_schedule, AFTER)
    if going_on == resumed:
        return make_report([], asked)
    evidence = (
        f"after {BEFORE} steps the rates go on as {told(going_on)}; saved and loaded they are {told(resumed)}"
    )
    return make_report([model_finding("schedule-without-state", evidence)], asked)


def rates(optimizer: Optimizer, schedule: Schedule, steps: int) -> list[float]:
    """Return the learning rate after each of a number of steps."""
    found_rates = []
    for _ in range(steps):
        optimizer.step()
        try:
            schedule.step()
        except TypeError as error:
            raise UsageError(
                f"{type(schedule).__name__}.step() raised TypeError: {error}. Where it wants a loss, give an "
                "object with step(), state_dict() and load_state_dict() that passes one on."
            ) from error
        found_rates.append(float(optimizer.param_groups[0]["lr"]))
    return found_rates


def told(values: list[float]) -> str:
    """Return the first three rates as text."""
    return ", ".join(f"{value:.3g}" for value in values[:3]) + ", ..."
