"""Judging the gradients and steps of an optimizer; tests/test_watching.py has whole trainings."""

from __future__ import annotations

import torch
from torch import nn

from transformer_doctor.checks.watched_optimizer import TrainingFindings, WatchedOptimizer, is_examined


def test_early_updates_and_then_every_64th_are_examined() -> None:
    assert [steps + 1 for steps in range(200) if is_examined(steps)] == [1, 2, 3, 4, 8, 16, 64, 128, 192]


def test_numbers_of_weights_follow_their_memory() -> None:
    """Weights whose memory is replaced, as by a move, are read anew."""
    module = nn.Linear(3, 5)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    watched = WatchedOptimizer(optimizer, dict(module.named_parameters()), TrainingFindings(lambda finding: None))
    first = watched.numbers()
    module.weight.data = module.weight.data + 1
    second = watched.numbers()
    assert [len(part) for part in watched.split(first)] == [15, 5]
    assert torch.equal(second, first + torch.tensor([1.0] * 15 + [0.0] * 5))
