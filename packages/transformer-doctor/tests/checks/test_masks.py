"""The fault of a mask is recognised from the scores, in any order in which rows and heads are folded."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.checks.masks import _hidden_scores, _mask_fault, per_row
from transformer_doctor.trace import Attention

B, H, T, E = 3, 5, 7, 11
LATER = torch.ones(T, T, dtype=torch.bool).triu(1)


def attention(mask: Tensor, fill: float = -math.inf) -> Attention:
    """Return a traced attention whose scores are filled where the mask (B or 1, T, T) is True."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, B, H, T, E)
    with AttentionTracer() as tracer:
        scores = (q @ k.transpose(-1, -2) * E**-0.5).masked_fill(mask[:, None], fill)
        scores.softmax(-1) @ v
    return tracer.attentions[0]


@pytest.mark.parametrize(
    ("mask", "fault"),
    [
        (LATER, None),
        (LATER & False, "absent"),
        (~LATER, "inverted"),
        (LATER.logical_not().tril(-1), "inverted"),
        (LATER.triu(2), "wide"),
        (LATER.triu(4), "partial"),
    ],
)
def test_the_fault_of_a_look_ahead_mask_is_recognised(mask: Tensor, fault: str | None) -> None:
    assert (
        _mask_fault(attention(mask[None], -1e9), LATER[None].expand(B, -1, -1), ~LATER[None].expand(B, -1, -1))
        == fault
    )


def test_weights_that_are_masked_late_and_normalised_again_are_hidden() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, B, H, T, E)
    with AttentionTracer() as tracer:
        weights = (q @ k.transpose(-1, -2)).softmax(-1) * ~LATER
        weights / weights.sum(-1, keepdim=True) @ v
        (q @ k.transpose(-1, -2)).softmax(-1).mul(~LATER) @ v
    right, wrong = tracer.attentions
    hide = LATER[None].expand(B, -1, -1)
    assert _mask_fault(right, hide, ~hide) is None
    assert _mask_fault(wrong, hide, ~hide) == "late"


def test_low_scores_without_a_mask_are_not_hidden() -> None:
    torch.manual_seed(0)
    q, k = 40 * torch.randn(2, B, H, T, E)
    with AttentionTracer() as tracer:
        (q @ k.transpose(-1, -2)).softmax(-1) @ k
    (strong,) = tracer.attentions
    assert strong.logits is not None
    assert float(strong.logits.min()) < -1000
    assert not _hidden_scores(strong).any()


def test_rows_are_found_in_both_orders_of_folding() -> None:
    values = torch.arange(B * H * T * T).view(B, H, T, T)
    batch_first, heads_first = values.flatten(0, 1), values.transpose(0, 1).flatten(0, 1)
    record = attention(LATER[None])
    assert any(torch.equal(rows, values) for rows in per_row(record, batch_first, B))
    assert any(torch.equal(rows, values) for rows in per_row(record, heads_first, B))
    assert torch.equal(next(per_row(record, values, B)), values)
