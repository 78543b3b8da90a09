"""Compare an attention function with equation 1 of the paper, computed in loops (invariant G).

Shapes: B batch, H heads, T queries, S keys, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.doctor.tolerances import SAME_ATTENTION

__all__ = ["examine_attention", "naive_attention"]

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
B, H, T, S, E = 2, 3, 5, 7, 11
STRENGTH = 3.0  # of queries and keys: scores far enough apart that a wrong scale is seen


def examine_attention(attend: Attend) -> Report:
    """Examine a function of query (B, H, T, E), key, value (B, H, S, E), mask (B, 1, T, S) -> (B, H, T, E).

    The mask is bool, True = may attend; every query has at least one key.
    """
    return make_report(list(attention_findings(attend)), ["attention is that of equation 1, masked and not"])


def attention_findings(attend: Attend) -> Iterator[Finding]:
    """Compare with loops, without and with hidden keys; name the scale or mask that explains a difference."""
    generator = torch.Generator().manual_seed(0)
    query, key = (STRENGTH**0.5 * torch.randn(B, H, length, E, generator=generator) for length in (T, S))
    value = torch.randn(B, H, S, E, generator=generator)
    mask = torch.rand(B, 1, T, S, generator=generator) < 0.6
    mask[..., 0] = True
    all_visible = torch.ones_like(mask)
    result = attend(query, key, value, all_visible)
    expected = naive_attention(query, key, value, all_visible, E**-0.5)
    if not close(result, expected):
        if close(result, naive_attention(query, key, value, all_visible, (H * E) ** -0.5)):
            evidence = f"scores are multiplied by {(H * E) ** -0.5:.4f} = 1 / sqrt({H} x {E}), not by 1 / sqrt({E})"
            yield model_finding("scaled-by-model-width", evidence)
            return
        scales = {"1": 1.0, f"1 / {E}": 1 / E, f"1 / sqrt({S})": S**-0.5, f"sqrt({E})": E**0.5}
        for name, factor in scales.items():
            if close(result, naive_attention(query, key, value, all_visible, factor)):
                yield model_finding("unusual-scale", f"scores are multiplied by {name} instead of 1 / sqrt({E})")
                return
        evidence = f"without a hidden key by up to {difference(result, expected):.2g}"
        yield model_finding("attention-differs", evidence)
        return
    masked = naive_attention(query, key, value, mask, E**-0.5)
    result = attend(query, key, value, mask)
    if close(result, masked):
        return
    if close(result, expected):
        yield model_finding("mask-fill", "with keys hidden, the result is that without a mask")
    elif close(result, naive_attention(query, key, value, ~mask, E**-0.5)):
        yield model_finding("attention-differs", "the mask is read the other way round: True hides")
    else:
        yield model_finding("attention-differs", f"with keys hidden by up to {difference(result, masked):.2g}")


def naive_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, factor: float) -> Tensor:
    """Compute equation 1 in loops over numbers: (B, H, T, E), (B, H, S, E), mask (B, 1, T, S) -> (B, H, T, E)."""
    result = torch.zeros(query.shape, dtype=torch.float64)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                scores = [float(query[b, h, t].double() @ key[b, h, s].double()) * factor for s in range(S)]
                seen = [s for s in range(S) if mask[b, 0, t, s]] or list(range(S))
                highest = max(scores[s] for s in seen)
                weights = {s: math.exp(scores[s] - highest) for s in seen}
                for s, weight in weights.items():
                    result[b, h, t] += weight / sum(weights.values()) * value[b, h, s].double()
    return result


def difference(result: Tensor, expected: Tensor) -> float:
    """Return the largest absolute difference, infinite where shapes differ."""
    return float((result.double() - expected).abs().max()) if result.shape == expected.shape else math.inf


def close(result: Tensor, expected: Tensor) -> bool:
    """Return whether results agree."""
    return difference(result, expected) < SAME_ATTENTION
