"""Masks that hide a part of what they have to; test_diagnosis.py has whole models."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.checks.masks import _hidden_scores, _mask_fault

B, H, T, E = 3, 5, 7, 11
LATER = torch.ones(T, T, dtype=torch.bool).triu(1)
HIDE = LATER[None].expand(B, -1, -1)


@pytest.mark.parametrize(
    ("mask", "fault"), [(LATER.logical_not().tril(-1), "inverted"), (LATER.triu(4), "partial")]
)
def test_the_fault_of_a_look_ahead_mask_is_recognised(mask: Tensor, fault: str) -> None:
    q, k, v = torch.randn(3, B, H, T, E)
    with AttentionTracer() as tracer:
        (q @ k.transpose(-1, -2) * E**-0.5).masked_fill(mask, -1e9).softmax(-1) @ v
    assert _mask_fault(tracer.attentions[0], HIDE, ~HIDE) == fault


def test_weights_that_are_masked_late_and_normalised_again_are_hidden() -> None:
    q, k, v = torch.randn(3, B, H, T, E)
    with AttentionTracer() as tracer:
        weights = (q @ k.transpose(-1, -2)).softmax(-1) * ~LATER
        weights / weights.sum(-1, keepdim=True) @ v
    assert _mask_fault(tracer.attentions[0], HIDE, ~HIDE) is None


def test_low_scores_without_a_mask_are_not_hidden() -> None:
    q, k = 40 * torch.randn(2, B, H, T, E)
    with AttentionTracer() as tracer:
        (q @ k.transpose(-1, -2)).softmax(-1) @ k
    (strong,) = tracer.attentions
    assert strong.logits is not None
    assert float(strong.logits.min()) < -1000
    assert not _hidden_scores(strong).any()
