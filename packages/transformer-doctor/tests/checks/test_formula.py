"""A user's attention function is compared with the formula, and the cause of a difference is named."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from transformer_doctor import examine_attention


def user_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, scale: float, fill: float) -> Tensor:
    scores = (query @ key.transpose(-1, -2) * scale).masked_fill(~mask, fill)
    return scores.softmax(-1) @ value


def test_the_attention_of_torch_matches_the_formula() -> None:
    assert not examine_attention(lambda q, k, v, m: sdpa(q, k, v, m)).findings


@pytest.mark.parametrize(
    ("scale", "fill", "name"),
    [
        (11**-0.5, -1e9, None),
        (33**-0.5, -math.inf, "scaled-by-model-width"),
        (1.0, -math.inf, "unusual-scale"),
        (11**0.5, -math.inf, "unusual-scale"),
        (0.4, -math.inf, "attention-differs"),
        (11**-0.5, -1e-12, "attention-differs"),
    ],
)
def test_a_wrong_scale_or_fill_is_named(scale: float, fill: float, name: str | None) -> None:
    report = examine_attention(lambda q, k, v, m: user_attention(q, k, v, m, scale=scale, fill=fill))
    assert report.names == ([name] if name else [])


def test_ignored_and_inverted_masks_are_named() -> None:
    report = examine_attention(lambda q, k, v, m: sdpa(q, k, v))
    assert report.names == ["mask-fill"]
    report = examine_attention(lambda q, k, v, m: sdpa(q, k, v, ~m if not bool(m.all()) else m))
    assert "the other way round" in report.findings[0].evidence


@pytest.mark.parametrize(
    ("weights", "evidence"),
    [
        (lambda scores: scores.softmax(-1), None),
        (lambda scores: scores.softmax(-1).mean(1), None),
        (lambda scores: scores, "(2, 3, 5, 7) in the place of (2, 3, 5, 7), is not the weights"),
        (
            lambda scores: scores.logsumexp(-1),
            "beside the result, (2, 3, 5) in the place of (2, 3, 5, 7), is not the weights",
        ),
    ],
)
def test_returned_weights_are_those_of_the_softmax(
    weights: Callable[[Tensor], Tensor], evidence: str | None
) -> None:
    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = (query @ key.mT / query.size(-1) ** 0.5).masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ value, weights(scores)

    found = [finding.evidence for finding in examine_attention(attend).findings]
    assert len(found) == (evidence is not None)
    assert all(evidence in text for text in found if evidence is not None)


@pytest.mark.parametrize("refuses_width_1", [False, True])
def test_heads_of_width_1_may_have_any_stride(refuses_width_1: bool) -> None:
    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        if query.stride(-1) != 1 and (refuses_width_1 or query.size(-1) != 1):
            raise ValueError("the last stride must be 1")
        return sdpa(query, key, value, mask)

    report = examine_attention(attend)
    assert report.names == ["attention-differs"] * refuses_width_1
    assert all(
        "the code raised ValueError: the last stride must be 1" in finding.evidence for finding in report.findings
    )
