"""Compare decoding token by token with teacher forcing (invariant E).

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from manyheads.doctor.behaviour import OTHER_SHAPE, relative
from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.doctor.report import Report, make_report
from manyheads.doctor.samples import Samples

__all__ = ["Stepping", "check_stepper"]


class Stepping(Protocol):
    """Decoder that keeps its state between tokens."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed the next token of each row (B,); return scores or log-probabilities of the following one (B, V)."""
        ...


@torch.no_grad()
def check_stepper(adapter: ModelAdapter, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed a target token by token and all at once, and compare the probabilities."""
    ids = samples.ids()
    at_once = adapter(ids).log_softmax(-1)
    stepper = start(ids[adapter.sides[0]].to(adapter.device))
    target = ids["target"].to(adapter.device)
    findings = []
    for position in range(target.size(1)):
        step = stepper.step(target[:, position]).float().log_softmax(-1)
        change = relative(at_once[:, position], step)
        if not change <= OTHER_SHAPE:
            evidence = f"at step {position + 1} the log-probabilities differ by {change:.1%} of their spread"
            findings.append(model_finding("cache-differs", evidence))
            break
    return make_report(findings, ["step by step gives the scores of all at once"])
