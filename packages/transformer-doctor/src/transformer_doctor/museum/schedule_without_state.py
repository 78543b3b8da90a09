"""A schedule that counts its steps in an attribute and loses them when training is interrupted."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR  # noqa: F401 (the fix needs it)

from transformer_doctor import examine_schedule

WIDTH, WARMUP = 512, 20


def rate(step: int) -> float:
    """Return the learning rate of the paper (section 5.3)."""
    step = max(step, 1)
    return WIDTH**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


class Noam:
    """Schedule of the paper, as it is often written."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer, self.steps = optimizer, 0

    def step(self) -> None:
        """Count a step and set the learning rate."""
        self.steps += 1
        self.optimizer.param_groups[0]["lr"] = rate(self.steps)


def make() -> tuple[torch.optim.Optimizer, Any]:
    """Return a new optimizer and its schedule."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    return optimizer, Noam(optimizer)
    # fix: return optimizer, LambdaLR(optimizer, rate)


def show() -> Iterator[str]:
    """Make forty steps, save and load all states, and make three more steps."""
    optimizer, schedule = make()
    for step in range(1, 41):
        optimizer.step()
        schedule.step()
        if step in (10, 20, 40):
            yield f"step {step:2}   rate {optimizer.param_groups[0]['lr']:.5f}"
    saved = [part.state_dict() if "state_dict" in dir(part) else None for part in (optimizer, schedule)]
    optimizer, schedule = make()
    for part, state in zip((optimizer, schedule), saved, strict=True):
        if state is not None:
            part.load_state_dict(state)
    yield "-- interrupted, resumed --"
    for step in range(41, 44):
        optimizer.step()
        schedule.step()
        yield f"step {step:2}   rate {optimizer.param_groups[0]['lr']:.5f}"


report = partial(examine_schedule, make)
