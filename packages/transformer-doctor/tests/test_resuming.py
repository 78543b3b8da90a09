"""Comparing a resumed training with one that is not interrupted: what was forgotten is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specimens.watched_trainings import Writer, nats, rows
from transformer_doctor import compare_resume


class Run:
    """A training with dropout, momentum, a schedule and shuffled data; a part of its state may be forgotten."""

    def __init__(self, forgotten: str, seed: int = 1) -> None:
        torch.manual_seed(seed)
        self.forgotten, self.position, self.calls = forgotten, 0, 0
        self.model = Writer(dropout=0.2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)

    def step(self) -> float:
        ids = rows(self.position if self.forgotten != "shuffled" else int(torch.randint(1000, ())))
        self.position += 1
        self.calls += 1
        loss = nats(self.model(ids[:, :-1]), ids[:, 1:]) * (1 + self.calls * (self.forgotten == "counter"))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def state_dict(self) -> dict[str, Any]:
        state = {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "schedule")}
        return {**state, "random": torch.get_rng_state(), "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("model", "optimizer", "schedule"):
            if name != self.forgotten:
                getattr(self, name).load_state_dict(state[name])
        if self.forgotten not in ("random", "shuffled"):
            torch.set_rng_state(state["random"])
        if self.forgotten != "position":
            self.position = state["position"]


@pytest.mark.parametrize(
    ("forgotten", "name"),
    [
        ("", None),
        ("model", "resume-differs"),
        ("optimizer", "optimizer-not-resumed"),
        ("schedule", "schedule-without-state"),
        ("random", "random-state-not-resumed"),
        ("shuffled", "random-state-not-resumed"),
        ("position", "data-not-resumed"),
        ("counter", "resume-differs"),
    ],
)
def test_what_a_resume_forgets_is_named(forgotten: str, name: str | None) -> None:
    report = compare_resume(lambda: Run(forgotten), Run.step)
    assert report.names == ([] if name is None else [name])
    assert report.asked == ("a resumed training goes on as one that was not interrupted",)
