"""Compare an attention function with equation 1 of the paper, written out (invariant G).

Shapes: B batch, H heads, T queries, S keys, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import report_errors
from transformer_doctor.report import Finding, Report, make_report, reason_of
from transformer_doctor.tolerances import SAME_ATTENTION

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Any]
_B, _H, _T, _S, _E = 2, 3, 5, 7, 11
_STRENGTH = 3.0  # of queries and keys: scores far enough apart that a wrong scale is seen


@report_errors
def examine_attention(attend: Attend) -> Report:
    """Examine a function of query (B, H, T, E), key, value (B, H, S, E), mask (B, 1, T, S) -> (B, H, T, E).

    The mask is bool, True = may attend; every query has at least one key. The function may return its weights too:
    (B, H, T, S), or (B, T, S) as their mean over the heads.
    """
    return make_report(list(_attention_findings(attend)), ["attention is that of equation 1, masked and not"])


def _attention_findings(attend: Attend) -> Iterator[Finding]:
    generator = torch.Generator().manual_seed(0)
    query, key = (_STRENGTH**0.5 * torch.randn(_B, _H, length, _E, generator=generator) for length in (_T, _S))
    value = torch.randn(_B, _H, _S, _E, generator=generator)
    mask = torch.rand(_B, 1, _T, _S, generator=generator) < 0.6
    mask[..., 0] = True
    all_visible = torch.ones_like(mask)
    result, _ = _result_and_weights(attend(query, key, value, all_visible))
    expected = _written_attention(query, key, value, all_visible, _E**-0.5)
    if not _close(result, expected):
        if _close(result, _written_attention(query, key, value, all_visible, (_H * _E) ** -0.5)):
            evidence = f"scores are multiplied by {(_H * _E) ** -0.5:.4f} = 1 / sqrt({_H} x {_E}),"
            yield model_finding("scaled-by-model-width", f"{evidence} not by 1 / sqrt({_E})")
            return
        scales = {"1": 1.0, f"1 / {_E}": 1 / _E, f"1 / sqrt({_S})": _S**-0.5, f"sqrt({_E})": _E**0.5}
        for name, factor in scales.items():
            if _close(result, _written_attention(query, key, value, all_visible, factor)):
                yield model_finding("unusual-scale", f"scores are multiplied by {name} instead of 1 / sqrt({_E})")
                return
        evidence = f"without a hidden key by up to {_difference(result, expected):.2g}"
        yield model_finding("attention-differs", evidence)
        return
    masked = _written_attention(query, key, value, mask, _E**-0.5)
    result, weights = _result_and_weights(attend(query, key, value, mask))
    if _close(result, masked):
        evidence = _weights_fault(weights, query, key, mask) or _layout_fault(attend, query, key, value, mask)
        if evidence:
            yield model_finding("attention-differs", evidence)
        return
    if _close(result, expected):
        yield model_finding("mask-fill", "with keys hidden, the result is that without a mask")
    elif _close(result, _written_attention(query, key, value, ~mask, _E**-0.5)):
        yield model_finding("attention-differs", "the mask is read the other way round: True hides")
    else:
        yield model_finding("attention-differs", f"with keys hidden by up to {_difference(result, masked):.2g}")


def _result_and_weights(returned: Any) -> tuple[Tensor, Any]:
    return (returned[0], returned[1]) if isinstance(returned, tuple) else (returned, None)


def _weights_fault(weights: Any, query: Tensor, key: Tensor, mask: Tensor) -> str:
    """Return the evidence that returned weights are not those of equation 1, empty if they are, or are None."""
    if weights is None:
        return ""
    units = torch.eye(_S).expand(_B, _H, _S, _S)  # as values they make the results the weights
    expected = _written_attention(query, key, units, mask, _E**-0.5)
    if _close(weights, expected) or _close(weights, expected.mean(1)):
        return ""
    shapes = f"{tuple(weights.shape)} in the place of {tuple(expected.shape)}"
    return f"what is returned beside the result, {shapes}, is not the weights"


def _layout_fault(attend: Attend, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> str:
    """Return the evidence that heads of width 1 are refused if that axis has another stride."""
    plain = [tensor[..., :1].contiguous() for tensor in (query, key, value)]
    views = [tensor.mT.clone(memory_format=torch.contiguous_format).mT for tensor in plain]
    layout = f"with heads of width 1 and strides {views[0].stride()} in the place of {plain[0].stride()}"
    with suppress(Exception):  # a kernel may want wider heads
        attend(plain[0], plain[1], plain[2], mask)
        try:
            attend(views[0], views[1], views[2], mask)
        except Exception as error:
            return f"{layout} {reason_of(error)}"
    return ""


def _written_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, factor: float) -> Tensor:
    """Compute equation 1 in float64: (B, H, T, E), (B, H, S, E), mask (B, 1, T, S) -> (B, H, T, E)."""
    scores = torch.einsum("bhte,bhse->bhts", query.double(), key.double()) * factor
    seen = mask | ~mask.any(-1, keepdim=True)
    return scores.masked_fill(~seen, -math.inf).softmax(-1) @ value.double()


def _difference(result: Tensor, expected: Tensor) -> float:
    return float((result.double() - expected).abs().max()) if result.shape == expected.shape else math.inf


def _close(result: Tensor, expected: Tensor) -> bool:
    return _difference(result, expected) < SAME_ATTENTION
