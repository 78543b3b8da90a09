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

__all__ = ["examine_attention", "naive_attention"]

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
B, H, T, S, E = 2, 3, 5, 7, 11
STRENGTH = 3.0  # of queries and keys: scores far enough apart that a wrong scale is seen
SAME = 1e-4


def examine_attention(attend: Attend) -> Report:
    """Examine a function of query (B, H, T, E), key, value (B, H, S, E), mask (B, 1, T, S) -> (B, H, T, E).

    The mask is bool, True = may attend; every query has at least one key.
    """
    return make_report(list(attention_findings(attend)), ["attention is that of equation 1, masked and not"])


def attention_findings(attend: Attend) -> Iterator[Finding]:
    """Compare with the loops, without and with hidden keys; name the scale or mask that explains a difference."""
    generator = torch.Generator().manual_seed(0)
    query, key = (STRENGTH**0.5 * torch.randn(B, H, length, E, generator=generator) for length in (T, S))
    value = torch.randn(B, H, S, E, generator=generator)
    mask = torch.rand(B, 1, T, S, generator=generator) < 0.6
    mask[..., 0] = True
    everything = torch.ones_like(mask)
    given = attend(query, key, value, everything)
    right = naive_attention(query, key, value, everything, E**-0.5)
    if not close(given, right):
        model = naive_attention(query, key, value, everything, (H * E) ** -0.5)
        if close(given, model):
            evidence = f"scores are multiplied by {(H * E) ** -0.5:.4f} = 1 / sqrt({H} x {E}), not by 1 / sqrt({E})"
            yield model_finding("scaled-by-model-width", evidence)
            return
        for told, factor in (("1", 1.0), (f"1 / {E}", 1 / E), (f"1 / sqrt({S})", S**-0.5), (f"sqrt({E})", E**0.5)):
            if close(given, naive_attention(query, key, value, everything, factor)):
                yield model_finding("unusual-scale", f"scores are multiplied by {told} instead of 1 / sqrt({E})")
                return
        yield model_finding("attention-differs", f"without a hidden key by up to {difference(given, right):.2g}")
        return
    given, right = attend(query, key, value, mask), naive_attention(query, key, value, mask, E**-0.5)
    if close(given, right):
        return
    if close(given, naive_attention(query, key, value, everything, E**-0.5)):
        yield model_finding("mask-fill", "with keys hidden, the result is that without a mask")
    elif close(given, naive_attention(query, key, value, ~mask, E**-0.5)):
        yield model_finding("attention-differs", "the mask is read the other way round: True hides")
    else:
        yield model_finding("attention-differs", f"with keys hidden by up to {difference(given, right):.2g}")


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


def difference(given: Tensor, right: Tensor) -> float:
    """Return the largest absolute difference, infinite where shapes differ."""
    return float((given.double() - right).abs().max()) if given.shape == right.shape else math.inf


def close(given: Tensor, right: Tensor) -> bool:
    """Return whether results agree."""
    return difference(given, right) < SAME
