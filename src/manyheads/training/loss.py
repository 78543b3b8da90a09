"""Cross-entropy with label smoothing (section 5.4) and the divergence of R-Drop, without holding all logits.

Shapes: N target tokens, n of them in a chunk, D model width, V vocabulary.

With smoothing s the target distribution is 1 - s on the correct token plus s / V on every token, as in torch's
`cross_entropy(label_smoothing=s)`. The logits of a few hundred tokens at a time are computed, turned into the
gradient, and dropped, so that memory does not grow with N x V.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_CHUNK_LOGITS = 4 * 2**20  # number of logits held at once: 16 MiB in float32, about the size of a CPU's cache


def cross_entropy_sums(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Compute loss and negative log-likelihood of the output layer, summed over all tokens, in nats.

    Args:
        hidden: last hidden states of real target positions (N, D).
        weight: output matrix (V, D).
        bias: output bias (V,), or None.
        targets: the correct token at each position (N,) int64.
        smoothing: label smoothing s.

    Returns:
        The smoothed loss, with a gradient, and the plain negative log-likelihood, without a gradient; float32 ().
    """
    grad_enabled = torch.is_grad_enabled()  # off in `forward`; `needs_input_grad` ignores `no_grad`
    return _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, smoothing, grad_enabled
    )


def _working_type(hidden: Tensor) -> torch.dtype:
    """Return the type of the matrix products: autocast's type where it is on, else the hidden states' type."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Cross-entropy that computes gradients chunk by chunk in the forward pass; the backward pass scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        grad_enabled: bool,
    ) -> tuple[Tensor, Tensor]:
        """Compute `cross_entropy_sums`; `grad_enabled` says whether a backward pass will follow."""
        dtype, size = _working_type(hidden), weight.size(0)
        with torch.autocast(hidden.device.type, enabled=False):
            h, w = hidden.to(dtype), weight.to(dtype)
            b = None if bias is None else bias.to(dtype)
            gradients = None
            if grad_enabled and any(ctx.needs_input_grad):
                gradients = _Gradients(hidden, weight, bias, smoothing)
            nll = hidden.new_zeros((), dtype=torch.float32)
            normalisers = nll.clone()
            rows = max(1, _CHUNK_LOGITS // size)
            for chunk, correct in zip(h.split(rows), targets.split(rows), strict=True):
                logits = functional.linear(chunk, w, b)
                probabilities = logits.softmax(-1)
                # log-sum-exp from the largest logit and its probability, without computing the exponentials again
                normaliser = logits.amax(-1).float() - probabilities.amax(-1).float().log()
                chunk_nll = normaliser - logits.gather(1, correct[:, None])[:, 0].float()
                nll += chunk_nll.sum()
                normalisers += normaliser.sum()
                if gradients is not None:
                    gradients.add(chunk, w, correct, probabilities, chunk_nll)
            if gradients is not None:
                gradients.finish(h, w)
                ctx.gradients = gradients
            # Smoothing needs the mean of all logits, which is the product with the mean row of the output matrix.
            mean_row = w.mean(0, dtype=torch.float32)
            mean_logits = (h.sum(0, dtype=torch.float32) * mean_row).sum()
            if b is not None:
                mean_logits = mean_logits + len(h) * b.mean(dtype=torch.float32)
            loss = (1 - smoothing) * nll + smoothing * (normalisers - mean_logits)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        scale, gradients = grad_outputs[0], ctx.gradients
        hidden = gradients.hidden * scale
        bias = None if gradients.bias is None else gradients.bias * scale
        return hidden, gradients.weight * scale, bias, None, None, None


class _Gradients:
    """The gradients of the summed loss with respect to the hidden states, the output matrix and its bias.

    With p the probabilities, the gradient at the logits is p - (1 - s) onehot - s / V. The last term is the same
    for every position and every token of the vocabulary, so it is added once at the end, as sums.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float) -> None:
        self.smoothing = smoothing
        self.row = 0
        self.hidden = torch.empty_like(hidden)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(self, chunk: Tensor, weight: Tensor, correct: Tensor, probabilities: Tensor, nll: Tensor) -> None:
        """Add the gradients of n positions, without the last term.

        Hidden states are (n, D), correct tokens (n,). The probabilities (n, V) are overwritten by the gradient at
        the logits; `nll` (n,) is exact where they are near 1.
        """
        difference = (-nll).exp() - (1 - self.smoothing)
        rows = torch.arange(len(correct), device=correct.device)
        logits = probabilities.index_put_((rows, correct), difference.to(probabilities.dtype))
        self.hidden[self.row : self.row + len(chunk)] = logits @ weight
        self.weight += logits.t() @ chunk
        if self.bias is not None:
            self.bias += logits.t() @ logits.new_ones(len(chunk))
        self.row += len(chunk)

    def finish(self, hidden: Tensor, weight: Tensor) -> None:
        """Add the term of label smoothing: hidden states (N, D), output matrix (V, D)."""
        if self.smoothing == 0:
            return
        share = self.smoothing / len(weight)
        self.hidden -= share * weight.sum(0, dtype=torch.float32)
        self.weight -= share * hidden.sum(0, dtype=torch.float32)
        if self.bias is not None:
            self.bias -= share * len(hidden)


def kl_divergence_sum(first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the mean of KL(p || q) and KL(q || p), summed over all tokens, in nats.

    Source: R-Drop, Liang et al. (2021), equation 2.

    Args:
        first: hidden states of one pass (N, D), which predict p.
        second: hidden states of another pass (N, D), which predict q.
        weight: output matrix (V, D).
        bias: output bias (V,), or None.

    Returns:
        float32 (), with gradients for all four arguments.
    """
    return _KlDivergence.apply(first, second, weight, bias)  # type: ignore[no-untyped-call]


class _KlDivergence(torch.autograd.Function):
    """A divergence whose gradients are computed in the forward pass, so that few logits are held at once."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        dtype = _working_type(first)
        total = first.new_zeros((), dtype=torch.float32)
        gradients = [torch.empty_like(first), torch.empty_like(second), torch.zeros_like(weight)]
        bias_gradient = None if bias is None else torch.zeros_like(bias)
        with torch.autocast(first.device.type, enabled=False):
            w = weight.to(dtype)
            b = None if bias is None else bias.to(dtype)
            rows = max(1, _CHUNK_LOGITS // len(weight))
            for start in range(0, len(first), rows):
                chunk = slice(start, start + rows)
                hidden = [side[chunk].to(dtype) for side in (first, second)]
                chunk_sum, *slopes = _divergence(*(functional.linear(side, w, b) for side in hidden))
                total += chunk_sum
                for side, slope, gradient in zip(hidden, slopes, gradients, strict=False):
                    rounded = slope.to(dtype)
                    gradient[chunk] = rounded @ w
                    gradients[2] += rounded.t() @ side
                    if bias_gradient is not None:
                        bias_gradient += slope.sum(0)
        ctx.gradients = (*gradients, bias_gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        return tuple(None if gradient is None else gradient * grad_outputs[0] for gradient in ctx.gradients)


def _divergence(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the divergence of two sets of logits (n, V), summed over the n tokens, and its gradients at both.

    With d = log p - log q, in float32, the gradient of KL(p || q) is p (d - KL) at p's logits, and q - p at q's.
    """
    log_p, log_q = first.float().log_softmax(-1), second.float().log_softmax(-1)
    p, q, d = log_p.exp(), log_q.exp(), log_p - log_q
    forward, backward = (p * d).sum(-1, keepdim=True), -(q * d).sum(-1, keepdim=True)
    gradients = p * (d - forward) + p - q, q - p - q * (d + backward)
    return (forward + backward).sum() / 2, gradients[0] / 2, gradients[1] / 2
