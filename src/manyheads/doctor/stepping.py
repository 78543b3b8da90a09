"""Decoding token by token beside teacher forcing (invariant E).

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from manyheads.doctor.behaviour import OTHER_SHAPE, relative
from manyheads.doctor.defects import found
from manyheads.doctor.patient import Patient
from manyheads.doctor.report import Report, make_report
from manyheads.doctor.samples import Samples

__all__ = ["Stepping", "check_stepper"]


class Stepping(Protocol):
    """A model in the middle of decoding."""

    def step(self, tokens: Tensor) -> Tensor:
        """The next input of each row (B,) -> scores or log-probabilities of the token after it (B, V)."""
        ...


@torch.no_grad()
def check_stepper(patient: Patient, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed a target token by token and all at once, and compare the probabilities."""
    ids = samples.ids()
    at_once = patient(ids).log_softmax(-1)
    stepper = start(ids[patient.sides[0]].to(patient.device))
    target = ids["target"].to(patient.device)
    findings = []
    for place in range(target.size(1)):
        step = stepper.step(target[:, place]).float().log_softmax(-1)
        change = relative(at_once[:, place], step)
        if not change <= OTHER_SHAPE:
            evidence = f"at step {place + 1} the log-probabilities differ by {change:.1%} of their spread"
            findings.append(found("cache-differs", evidence))
            break
    return make_report(findings, ["step by step gives the scores of all at once"])
