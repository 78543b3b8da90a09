"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), for self-attention and cross-attention.

Shapes: B batch, T queries, S keys, D model width, H heads, E = D / H head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.positions import apply_rotary

# A function that is called with every attention of an observed module: the module, queries (B, H, T, E),
# keys and values (B, H, S, E) and mask.
Observer = Callable[["MultiHeadAttention", Tensor, Tensor, Tensor, Tensor | None], None]

# Up to this many keys, the plain formula trains faster on a CPU than torch's fused kernel (`benchmarks/layers.py`).
_FEW_KEYS = 128


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(Q K^T / sqrt(E)) (equation 1): (B, H, T, E), (B, H, S, E) -> (B, H, T, S).

    The weight is 0 where the mask is False. A query whose keys are all masked gets equal weights; no text has such
    a query.
    """
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """Compute scaled dot-product attention (equation 1): -> (B, H, T, E).

    Args:
        query: queries (B, H, T, E).
        key: keys (B, H, S, E).
        value: values (B, H, S, E).
        mask: bool, broadcast to (B, H, T, S); True = may attend. None masks nothing.
        dropout: probability that an attention weight is zeroed.
    """
    if dropout == 0.0 and query.requires_grad and query.device.type == "cpu" and key.size(2) <= _FEW_KEYS:
        return attention_weights(query, key, mask) @ value
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


class MultiHeadAttention(nn.Module):
    """H attentions in parallel, each on its own projections of width E (section 3.2.2).

    The matrix of `project_in` (3D, D) holds the projections to queries, keys and values, in this order from top to
    bottom, so that self-attention needs one matrix product.
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
        """Attend from x (B, T, D) to memory (B, S, D) -> (B, T, D); in self-attention, memory is x."""
        return self.attend(self.queries(x), *self.keys_values(memory), mask)

    def queries(self, x: Tensor) -> Tensor:
        """Project to queries: (B, T, D) -> (B, H, T, E)."""
        return self.split_heads(self.project(x, 0, 1))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Project to keys and values: (B, S, D) -> twice (B, H, S, E)."""
        key, value = self.project(x, 1, 3).chunk(2, -1)
        return self.split_heads(key), self.split_heads(value)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project to queries, keys and values in one matrix product: (B, T, D) -> three times (B, H, T, E)."""
        query, key, value = self.project_in(x).chunk(3, -1)
        return self.split_heads(query), self.split_heads(key), self.split_heads(value)

    def self_attend(self, x: Tensor, mask: Tensor, cos_sin: Tensor | None = None) -> Tensor:
        """Attend from x to x, with rotary positions if there are any: (B, T, D) -> (B, T, D).

        Args:
            x: the input.
            mask: bool, broadcast to (B, H, T, T); True = may attend.
            cos_sin: cosines and sines of rotary positions (B or 1, 1, T, E / 2, 2), or None.
        """
        query, key, value = self.queries_keys_values(x)
        if cos_sin is not None:
            query, key = apply_rotary(query, cos_sin), apply_rotary(key, cos_sin)
        return self.attend(query, key, value, mask)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend in each head, concatenate the heads, and project the result.

        Args:
            query: queries (B, H, T, E).
            key: keys (B, H, S, E).
            value: values (B, H, S, E).
            mask: bool, broadcast to (B, H, T, S); True = may attend.

        Returns:
            (B, T, D).
        """
        if self.observer is not None:
            self.observer(self, query, key, value, mask)
        dropout = self.dropout if self.training else 0.0
        return self.project_out(self.merge_heads(attend(query, key, value, mask, dropout)))

    def project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Apply a part of the input projection: (B, T, D) -> (B, T, (last - first) D).

        Args:
            x: the input.
            first: the first projection: 0 queries, 1 keys, 2 values.
            last: the projection after the last one, 1 to 3.
        """
        width = x.size(-1)
        weight = self.project_in.weight[first * width : last * width]
        bias = self.project_in.bias
        return functional.linear(x, weight, None if bias is None else bias[first * width : last * width])

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the width into heads: (B, S, D) -> (B, H, S, E)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads: (B, H, T, E) -> (B, T, D)."""
        return x.transpose(1, 2).flatten(2)
