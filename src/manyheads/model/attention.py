"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), for self- and cross-attention alike.

Shapes: B batch, T queries, S keys, D model width, H heads, E = D / H head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["MultiHeadAttention", "Observer", "attend", "attention_weights"]

# Told of every attention while somebody looks inside: module, queries (B, H, T, E), keys (B, H, S, E), mask.
Observer = Callable[["MultiHeadAttention", Tensor, Tensor, Tensor | None], None]

# Below this many keys, and only while gradients are wanted on a CPU, the plain formula is faster than torch's
# fused kernel (`benchmarks/layers.py`).
SHORT = 128


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(E)) (equation 1): (B, H, T, E), (B, H, S, E) -> (B, H, T, S).

    Where mask is False the weight is 0, but a query without a single key (which no text has) gets equal weights.
    """
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """Scaled dot-product attention (equation 1): (B, H, T, E) and twice (B, H, S, E) -> (B, H, T, E).

    Args:
        query: what asks.
        key: what it is compared with.
        value: what it takes home.
        mask: bool, broadcast to (B, H, T, S); True = may attend.
        dropout: probability that an attention weight is zeroed.
    """
    if dropout == 0.0 and query.requires_grad and query.device.type == "cpu" and key.size(2) <= SHORT:
        return attention_weights(query, key, mask) @ value
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own projection of width E (section 3.2.2).

    The three projections of the input stand in one matrix (3D, D), query above key above value, so that
    self-attention needs one product.
    """

    def __init__(self, d_model: int, num_heads: int, *, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.observer: Observer | None = None
        self.project_in = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.project_out = nn.Linear(d_model, d_model, bias=bias)
        for matrix in (*self.project_in.weight.split(d_model), self.project_out.weight):
            nn.init.xavier_uniform_(matrix)
        if bias:
            nn.init.zeros_(self.project_in.bias)
            nn.init.zeros_(self.project_out.bias)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Let x (B, T, D) look at memory (B, S, D), itself or another -> (B, T, D)."""
        return self.attend(self.queries(x), *self.keys_values(memory), mask)

    def queries(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, E)."""
        return self.split(self.project(x, 0, 1))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, D) -> keys and values, each (B, H, S, E)."""
        key, value = self.project(x, 1, 3).chunk(2, -1)
        return self.split(key), self.split(value)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All three of the same input, in one product: (B, T, D) -> three times (B, H, T, E)."""
        query, key, value = self.project_in(x).chunk(3, -1)
        return self.split(query), self.split(key), self.split(value)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend in each head, put the heads together and mix them: -> (B, T, D)."""
        if self.observer is not None:
            self.observer(self, query, key, mask)
        dropout = self.dropout if self.training else 0.0
        return self.project_out(self.merge(attend(query, key, value, mask, dropout)))

    def project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Thirds first..last of the input projection: (B, T, D) -> (B, T, (last - first) D)."""
        width = x.size(-1)
        weight = self.project_in.weight[first * width : last * width]
        bias = self.project_in.bias
        return functional.linear(x, weight, None if bias is None else bias[first * width : last * width])

    def split(self, x: Tensor) -> Tensor:
        """Give each head its share of the width: (B, S, D) -> (B, H, S, E)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """Put the heads side by side: (B, H, T, E) -> (B, T, D)."""
        return x.transpose(1, 2).flatten(2)
