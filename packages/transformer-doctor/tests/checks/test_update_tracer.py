"""Sparse gradients are observed; test_updates.py and test_watching.py have whole trainings."""

from __future__ import annotations

import torch
from torch import nn

from transformer_doctor.checks.update_tracer import UpdateTracer

V, D = 11, 4
IDS = torch.tensor([[3, 1, 4], [1, 5, 9]])


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
