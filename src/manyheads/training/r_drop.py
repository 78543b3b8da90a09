"""The divergence of two predictions of the same tokens (R-Drop: Liang et al. 2021, equation 2).

Shapes: N target tokens, n of them in a chunk, D model width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.training.loss import CHUNK_LOGITS, working_type

__all__ = ["kl_divergence_sum"]


def kl_divergence_sum(first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the mean of KL(p || q) and KL(q || p), summed over all tokens, in nats.

    Args:
        first: hidden states of one pass (N, D), which predict p.
        second: hidden states of another pass (N, D), which predict q.
        weight: output matrix (V, D).
        bias: output bias (V,), or None.

    Returns:
        float32 (), with gradients for all four arguments.
    """
    return KlDivergence.apply(first, second, weight, bias)  # type: ignore[no-untyped-call]


class KlDivergence(torch.autograd.Function):
    """A divergence whose gradients are computed in the forward pass, so that few logits are held at once."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute `kl_divergence_sum`."""
        dtype = working_type(first)
        total = first.new_zeros((), dtype=torch.float32)
        gradients = [torch.empty_like(first), torch.empty_like(second), torch.zeros_like(weight)]
        bias_gradient = None if bias is None else torch.zeros_like(bias)
        with torch.autocast(first.device.type, enabled=False):
            w = weight.to(dtype)
            b = None if bias is None else bias.to(dtype)
            rows = max(1, CHUNK_LOGITS // len(weight))
            for start in range(0, len(first), rows):
                chunk = slice(start, start + rows)
                hidden = [side[chunk].to(dtype) for side in (first, second)]
                chunk_sum, *slopes = divergence(*(functional.linear(side, w, b) for side in hidden))
                total += chunk_sum
                for side, slope, gradient in zip(hidden, slopes, gradients, strict=False):
                    small = slope.to(dtype)
                    gradient[chunk] = small @ w
                    gradients[2] += small.t() @ side
                    if bias_gradient is not None:
                        bias_gradient += slope.sum(0)
        ctx.gradients = (*gradients, bias_gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        return tuple(None if gradient is None else gradient * grad_outputs[0] for gradient in ctx.gradients)


def divergence(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the divergence of two sets of logits (n, V), summed over the n tokens, and its gradients at both.

    With d = log p - log q, in float32, the gradient of KL(p || q) is p (d - KL) at p's logits, and q - p at q's.
    """
    log_p, log_q = first.float().log_softmax(-1), second.float().log_softmax(-1)
    p, q, d = log_p.exp(), log_q.exp(), log_p - log_q
    forward, backward = (p * d).sum(-1, keepdim=True), -(q * d).sum(-1, keepdim=True)
    gradients = p * (d - forward) + p - q, q - p - q * (d + backward)
    return (forward + backward).sum() / 2, gradients[0] / 2, gradients[1] / 2
