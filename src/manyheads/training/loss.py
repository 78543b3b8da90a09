"""Cross-entropy with label smoothing (section 5.4), without ever holding all logits.

Shapes: N target tokens, D model width, V vocabulary.

With smoothing s the target distribution is 1 - s on the right token plus s / V on every token, as in torch's
`cross_entropy(label_smoothing=s)`. The logits of a few hundred tokens at a time are computed, turned into the
gradient at once, and dropped: memory stays flat in V, and nothing is written that is read only once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["cross_entropy_sums"]

CHUNK_LOGITS = 4 * 2**20  # logits held at once; 16 MiB in float32, about a processor's cache


def cross_entropy_sums(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood of the output layer, summed over all tokens, in nats.

    Args:
        hidden: last hidden states of real target positions (N, D).
        weight: output matrix (V, D).
        bias: output bias (V,), or None.
        targets: the right token of each (N,) int64.
        smoothing: label smoothing s.

    Returns:
        The smoothed loss, which has a gradient, and the plain negative log-likelihood, which has none; float32 ().
    """
    wanted = torch.is_grad_enabled()  # inside `forward` it never is, and `needs_input_grad` does not ask
    return ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, smoothing, wanted
    )


def working_type(hidden: Tensor) -> torch.dtype:
    """What the products are computed in: autocast's type where it is on, else that of the hidden states."""
    device = hidden.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype


class ChunkedCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, chunk by chunk, and scaled in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        """See `cross_entropy_sums`; `wanted` says whether there will be a backward pass."""
        dtype, size = working_type(hidden), weight.size(0)
        with torch.autocast(hidden.device.type, enabled=False):
            h, w = hidden.to(dtype), weight.to(dtype)
            b = None if bias is None else bias.to(dtype)
            gradients = None
            if wanted and any(ctx.needs_input_grad):
                gradients = Gradients(hidden, weight, bias, smoothing)
            nll = hidden.new_zeros((), dtype=torch.float32)
            normalisers = nll.clone()
            rows = max(1, CHUNK_LOGITS // size)
            for chunk, right in zip(h.split(rows), targets.split(rows), strict=True):
                logits = functional.linear(chunk, w, b)
                probabilities = logits.softmax(-1)
                # log sum exp, from the largest logit and its probability, without another pass of exponentials
                normaliser = logits.amax(-1).float() - probabilities.amax(-1).float().log()
                chunk_nll = normaliser - logits.gather(1, right[:, None])[:, 0].float()
                nll += chunk_nll.sum()
                normalisers += normaliser.sum()
                if gradients is not None:
                    gradients.add(chunk, w, right, probabilities, chunk_nll)
            if gradients is not None:
                gradients.finish(h, w)
                ctx.gradients = gradients
            # Smoothing asks for the mean of all logits, which is that of one averaged output row.
            mean_row = w.mean(0, dtype=torch.float32)
            mean_logits = (h.sum(0, dtype=torch.float32) * mean_row).sum()
            if b is not None:
                mean_logits = mean_logits + len(h) * b.mean(dtype=torch.float32)
            loss = (1 - smoothing) * nll + smoothing * (normalisers - mean_logits)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale what the forward pass computed."""
        scale, found = grad_outputs[0], ctx.gradients
        hidden = found.hidden * scale
        bias = None if found.bias is None else found.bias * scale
        return hidden, found.weight * scale, bias, None, None, None


class Gradients:
    """Gradients of the summed loss with respect to the hidden states, the output matrix and its bias.

    With p the probabilities, the gradient at the logits is p - (1 - s) onehot - s / V. Its last part is the
    same for every token and every word, so it is added once at the end, as sums instead of products.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float) -> None:
        self.smoothing = smoothing
        self.row = 0
        self.hidden = torch.empty_like(hidden)
        self.weight = torch.zeros_like(weight)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add(self, chunk: Tensor, weight: Tensor, right: Tensor, probabilities: Tensor, nll: Tensor) -> None:
        """The part of some tokens.

        Args:
            chunk: hidden states (n, D).
            weight: output matrix (V, D).
            right: right tokens (n,).
            probabilities: (n, V); overwritten.
            nll: negative log-likelihood of the right tokens (n,), float32: what is nearly 1 keeps its digits.
        """
        wrongness = (-nll).exp() - (1 - self.smoothing)
        rows = torch.arange(len(right), device=right.device)
        logits = probabilities.index_put_((rows, right), wrongness.to(probabilities.dtype))
        self.hidden[self.row : self.row + len(chunk)] = logits @ weight
        self.weight += logits.t() @ chunk
        if self.bias is not None:
            self.bias += logits.t() @ logits.new_ones(len(chunk))
        self.row += len(chunk)

    def finish(self, hidden: Tensor, weight: Tensor) -> None:
        """The part that smoothing spreads over all words: hidden (N, D), matrix (V, D)."""
        if self.smoothing == 0:
            return
        share = self.smoothing / len(weight)
        self.hidden -= share * weight.sum(0, dtype=torch.float32)
        self.weight -= share * hidden.sum(0, dtype=torch.float32)
        if self.bias is not None:
            self.bias -= share * len(hidden)
