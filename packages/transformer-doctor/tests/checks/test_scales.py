"""The factor of scores is measured even if a bias is added; known designs without 1 / sqrt(E) are sound."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.checks.scales import scale_findings, tied_logits_findings
from transformer_doctor.trace import Attention

B, T, D, H = 3, 7, 32, 4
E = D // H


def traced(
    score: Callable[[Tensor, Tensor], Tensor],
    seed: int = 0,
    prepare: Callable[[nn.Linear], object] = lambda layer: None,
) -> list[Attention]:
    """Return the attentions of two passes over random inputs, with logits from a function of queries and keys."""
    torch.manual_seed(seed)
    query, key, value = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)
    prepare(query)
    records = []
    for _ in range(2):
        x = torch.randn(B, T, D)
        with torch.no_grad(), AttentionTracer({"source": torch.zeros(B, T, dtype=torch.long)}) as tracer:
            q, k, v = (f(x).unflatten(-1, (H, E)).transpose(1, 2) for f in (query, key, value))
            score(q, k).softmax(-1) @ v
        records += tracer.attentions
    return records


BIAS = torch.linspace(-3, 3, T)[:, None] - torch.linspace(-3, 3, T)


@pytest.mark.parametrize(
    "score",
    [
        lambda q, k: q @ k.mT / E**0.5,
        lambda q, k: (q * E**-0.25) @ (k * E**-0.25).mT,
        lambda q, k: (q @ k.mT).mul_(E**-0.5) + BIAS,
        lambda q, k: torch.div(q @ k.mT, torch.tensor(E**0.5)).masked_fill(BIAS > 2, -1e9),
        lambda q, k: torch.einsum("...id,...jd->...ij", q, k) * E**-0.5,
        lambda q, k: torch.matmul(q, k.mT, out=torch.empty(B, H, T, T)) * E**-0.5,
    ],
)
def test_the_factor_is_measured_in_every_way_of_writing_it(score: Callable[[Tensor, Tensor], Tensor]) -> None:
    first, second = traced(score)
    assert not list(scale_findings([first], [second]))


@pytest.mark.parametrize(
    "score",
    [
        lambda q, k: 5 * torch.tanh(q @ k.mT),
        lambda q, k: q @ k.mT * torch.linspace(1, 3, H)[:, None, None],
        lambda q, k: 10 * nn.functional.normalize(q, dim=-1) @ nn.functional.normalize(k, dim=-1).mT,
        lambda q, k: 10 * (q * q.pow(2).sum(-1, keepdim=True).rsqrt()) @ k.mT,
    ],
    ids=["capped", "per head", "normalised", "divided by a root"],
)
def test_scores_that_have_no_single_factor_are_not_judged(score: Callable[[Tensor, Tensor], Tensor]) -> None:
    first, second = traced(score)
    assert not list(scale_findings([first], [second]))


@pytest.mark.parametrize(
    ("score", "severity"),
    [
        (lambda q, k: q @ k.mT, "warning"),
        (lambda q, k: (q * E**-0.5) @ (k * E**-0.5).mT, "warning"),
        (lambda q, k: q @ k.mT / E, "note"),
        (lambda q, k: q @ k.mT * E**0.5, "warning"),
        (lambda q, k: q @ k.mT / T**0.5, "warning"),
        (lambda q, k: q @ k.mT / 3.7, "note"),
    ],
)
def test_an_unusual_factor_is_named(score: Callable[[Tensor, Tensor], Tensor], severity: str) -> None:
    first, second = traced(score)
    (finding,) = scale_findings([first], [second])
    assert (finding.name, finding.severity) == ("unusual-scale", severity)


def test_the_design_of_t5_is_sound() -> None:
    """T5 initializes its queries smaller by 1 / sqrt(E), and adds a bias of distances to its scores."""
    first, second = traced(lambda q, k: q @ k.mT, prepare=lambda layer: layer.weight.data.mul_(E**-0.5))
    assert not list(scale_findings([first], [second]))
    first, second = traced(lambda q, k: q @ k.mT + BIAS)
    assert not list(scale_findings([first], [second]))


def test_scores_without_a_scale_are_a_note_where_the_weights_may_compensate() -> None:
    first, second = traced(lambda q, k: q @ k.mT, prepare=lambda layer: nn.init.normal_(layer.weight, std=0.1))
    assert [finding.severity for finding in scale_findings([first], [second])] == ["note"]


@pytest.mark.parametrize(
    ("factor", "spread", "norm", "named"),
    [
        (D**0.5, 5.0, D**0.5, True),
        (D**-0.5, 0.2, 1.0, True),
        (D**-0.5, 1.0, D**0.5, False),
        (D**0.5, 1.0, 1.0, False),  # rows of norm 1
        (D**0.5, 0.6, 0.1, True),
        (1.0, 5.0, 1.0, False),
        (0.3, 0.01, 1.0, False),
    ],
)
def test_tied_logits_are_named_where_a_root_of_the_width_compensates_nothing(
    factor: float, spread: float, norm: float, named: bool
) -> None:
    findings = [finding.name for finding in tied_logits_findings(D, factor, spread, norm)]
    assert findings == ["tied-logits-scaled"] * named
