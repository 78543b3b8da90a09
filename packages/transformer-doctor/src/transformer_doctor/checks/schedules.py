"""Examine whether a learning-rate schedule continues where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from torch.optim import Optimizer

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import report_errors
from transformer_doctor.errors import UsageError
from transformer_doctor.report import Finding, Report, make_report
from transformer_doctor.signatures import parameters_of

_COUNTS = ("epoch", "step", "num", "iter")  # in the names of arguments that count
_SHAPE = "the rate neither stays 0, nor grows without end, nor swings"
_ZERO_STEPS, _FEW_STEPS, _MANY_STEPS = 100, 400, 20_000
_BEFORE, _AFTER = 7, 5  # steps before and after the interruption


@report_errors
def examine_schedule(make: Callable[[], Any]) -> Report:
    """Examine whether a schedule that is saved and loaded into a new one gives the same rates (invariant J).

    Args:
        make: function that returns a new optimizer and its schedule, or the schedule alone where it holds the
            optimizer, as a wrapper such as NoamOpt does; called twice. A schedule has step(), or
            step_and_update_lr().

    Raises:
        UsageError: no optimizer or step function is found, or the function raises a TypeError.
    """
    optimizer, schedule = _parts(make())
    _rates(optimizer, schedule, _BEFORE)
    asked = ["the schedule continues where it stopped"]
    has_state = hasattr(schedule, "state_dict") and hasattr(schedule, "load_state_dict")
    state = schedule.state_dict() if has_state else None
    optimizer_state = optimizer.state_dict() if hasattr(optimizer, "state_dict") else None
    uninterrupted = _rates(optimizer, schedule, _AFTER, done=_BEFORE)
    new_optimizer, new_schedule = _parts(make())
    if has_state:
        new_schedule.load_state_dict(state)
    if optimizer_state is not None:
        new_optimizer.load_state_dict(optimizer_state)
    resumed = _rates(new_optimizer, new_schedule, _AFTER, done=_BEFORE)
    findings = list(_shape_findings(*_parts(make())))
    asked.append(_SHAPE)
    if uninterrupted == resumed:
        return make_report(findings, asked)
    evidence = f"after {_BEFORE} steps the rates continue as {_first_rates(uninterrupted)};"
    evidence += f" saved and loaded they are {_first_rates(resumed)}"
    if not has_state:
        evidence = f"{type(schedule).__name__} has no state_dict and load_state_dict; {evidence}"
    return make_report([model_finding("schedule-without-state", evidence), *findings], asked)


def _shape_findings(optimizer: Any, schedule: Any) -> Iterator[Finding]:
    """Yield a finding about rates that stay zero, grow without end, or fall and climb again and again.

    Steps are made until the rate falls or rests; only growth goes on to the end.
    """
    rates: list[float] = []
    with suppress(Exception):  # some schedules refuse more steps than they were made for
        while len(rates) < _FEW_STEPS or (rates[-1] > rates[-2] and len(rates) < _MANY_STEPS):
            rates += _rates(optimizer, schedule, 1, done=len(rates))
    if len(rates) >= _FEW_STEPS and not any(rates[:_ZERO_STEPS]):
        yield model_finding("unusual-schedule", f"the rate is 0 in the first {_ZERO_STEPS} steps")
    elif len(rates) >= _MANY_STEPS:
        evidence = f"the rate still grows after {_MANY_STEPS:,} steps: from {rates[0]:.3g} to {rates[-1]:.3g}"
        yield model_finding("unusual-schedule", evidence)
    signs = [after > before for before, after in pairwise(rates) if after != before]
    # a restart climbs in one step, and falls in several
    swings = [False, True, True], [False, True, False, True]
    climbs = sum(signs[index : index + len(swing)] == swing for swing in swings for index in range(len(signs)))
    if climbs > 1:
        evidence = f"in {len(rates)} steps the rate falls and climbs again {climbs} times"
        yield model_finding("unusual-schedule", evidence, "note")


def _parts(made: Any) -> tuple[Any, Any]:
    """Return optimizer and schedule of a value: a pair of them, or a schedule that holds its optimizer.

    Raises:
        UsageError: there is no optimizer.
    """
    if isinstance(made, (tuple, list)) and len(made) == 2:
        schedule = made[1] if _step_of(made[1]) is not None else made[0]
        optimizer = made[0] if schedule is made[1] else made[1]
        return _held_optimizer(optimizer) or optimizer, schedule
    optimizer = _held_optimizer(made)
    if optimizer is None:
        raise UsageError(
            f"make returned {type(made).__name__}, in which no optimizer was found. Return the optimizer and the "
            "schedule: (optimizer, schedule)."
        )
    return optimizer, made


def _held_optimizer(value: Any) -> Any:
    """Return a value that is an optimizer, or the optimizer in its attributes; None where there is none."""
    if isinstance(value, Optimizer):
        return value
    held = [*vars(value).values()] if hasattr(value, "__dict__") else []
    held.sort(key=lambda attribute: not isinstance(attribute, Optimizer))
    return next(filter(None, map(_held_optimizer, held)), None)


def _step_of(schedule: Any) -> Callable[..., Any] | None:
    named = (getattr(schedule, name, None) for name in ("step_and_update_lr", "step"))
    return next((function for function in named if callable(function)), None)


def _rates(optimizer: Any, schedule: Any, steps: int, done: int = 0) -> list[float]:
    """Return the learning rate after each of a number of steps; `done` steps were made before.

    Raises:
        UsageError: the schedule makes no steps.
    """
    step = _step_of(schedule)
    if step is None:
        raise UsageError(f"{type(schedule).__name__} has neither step() nor step_and_update_lr().")
    learning_rates = []
    for index in range(steps):
        if schedule is not optimizer:
            optimizer.step()
        try:
            step(*_step_arguments(step, done + index + 1))
        except TypeError as error:
            raise UsageError(
                f"{type(schedule).__name__}.{step.__name__}() raised TypeError: {error}. Give an object with "
                "step(), state_dict() and load_state_dict() that passes on what it wants."
            ) from error
        learning_rates.append(float(optimizer.param_groups[0]["lr"]))
    return learning_rates


def _step_arguments(step: Callable[..., Any], number: int) -> list[float]:
    """Return the arguments that a step needs: its number for a name that counts, else a constant loss."""
    needed = [
        parameter.name for parameter in parameters_of(step) or () if parameter.required and not parameter.by_name
    ]
    return [number if any(word in name for word in _COUNTS) else 1.0 for name in needed]


def _first_rates(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values[:3]) + ", ..."
