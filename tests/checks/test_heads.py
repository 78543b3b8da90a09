"""Idle heads and broken weights are named."""

from __future__ import annotations

import torch
from tests.checks.severities import severities

from manyheads.checks.heads import _Head, _head_findings, weight_findings


def test_idle_heads_and_weights_that_are_not_finite_are_named() -> None:
    busy = [_Head(f"encoder 1.{head}", 0.6, 0.1, 0.2) for head in range(8)]
    assert severities(_head_findings(busy)) == {}
    even, sink = _Head("cross 1.1", 0.995, 0.1, 0.1), _Head("decoder 2.1", 0.1, 0.99, 0.0)
    assert severities(_head_findings([*busy, even, sink])) == {"idle-heads": "note"}
    assert severities(_head_findings([even, even, sink])) == {"idle-heads": "warning"}
    assert severities(weight_findings({"a.weight": torch.zeros(3)})) == {}
    broken = {"a.weight": torch.tensor([1.0, torch.nan]), "b.bias": torch.tensor([torch.inf]), "c": torch.ones(2)}
    (finding,) = weight_findings(broken)
    assert (finding.name, finding.evidence) == ("weights-not-finite", "2 tensors: a.weight, b.bias")
