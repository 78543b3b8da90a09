"""The layers of the encoder and of the decoder (Vaswani et al. 2017, sections 3.1 and 3.3).

Shapes: B batch, S source length, T target length, D model width, H heads, E head width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.cache import KeyValueCache
from manyheads.model.dropout import Dropout, SharedDropout
from manyheads.model.positions import rotate_pairs

__all__ = [
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "KeysValues",
    "PostNorm",
    "PreNorm",
    "build_attention",
    "build_sublayer",
    "final_norm",
    "turned",
]

KeysValues = tuple[Tensor, Tensor]


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x))), as in the paper (sections 3.1 and 5.4).

    While training, the sublayer can be left out for some sentences as a whole (Huang et al. 2016).
    """

    def __init__(self, d_model: int, dropout: float, epsilon: float, layer_dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=epsilon)
        self.dropout = Dropout(dropout)
        self.layer_dropout = SharedDropout(layer_dropout, axes=(1, 2))

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        return self.norm(x + self.layer_dropout(self.dropout(sublayer(x))))


class PreNorm(PostNorm):
    """x + dropout(sublayer(norm(x))): trains without a long warm-up (Xiong et al. 2020)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        return x + self.layer_dropout(self.dropout(sublayer(self.norm(x))))


def build_sublayer(config: ModelConfig) -> PreNorm | PostNorm:
    """The connection around a sublayer: residual, dropout and norm in the order of `model.norm`."""
    kind = PreNorm if config.norm == "pre" else PostNorm
    return kind(config.d_model, config.dropout, config.norm_epsilon, config.layer_dropout)


def final_norm(config: ModelConfig) -> nn.Module:
    """What stands after the last layer: pre-norm leaves the residual stream unnormed at its end."""
    return nn.LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else nn.Identity()


def build_attention(config: ModelConfig) -> MultiHeadAttention:
    """An attention of the configured widths."""
    return MultiHeadAttention(config.d_model, config.num_heads, dropout=config.attention_dropout, bias=config.bias)


class FeedForward(nn.Module):
    """The same two linear maps at each position, a non-linearity between them (section 3.3).

    `swiglu` (Shazeer 2020) gates one half of a doubled inner width by the other.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        doubled = 2 if config.activation == "swiglu" else 1
        self.expand = nn.Linear(config.d_model, doubled * config.d_ff, bias=config.bias)
        self.dropout = Dropout(config.feed_forward_dropout)
        self.contract = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        for matrix in (*self.expand.weight.split(config.d_ff), self.contract.weight):
            nn.init.xavier_uniform_(matrix)
        if config.bias:
            nn.init.zeros_(self.expand.bias)
            nn.init.zeros_(self.contract.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        return self.contract(self.dropout(self.activate(self.expand(x))))

    def activate(self, x: Tensor) -> Tensor:
        """The non-linearity: (B, S, F), or for swiglu (B, S, 2F), -> (B, S, F)."""
        if self.activation == "relu":
            return functional.relu(x)
        if self.activation in ("gelu", "gelu-tanh"):
            return functional.gelu(x, approximate="tanh" if self.activation == "gelu-tanh" else "none")
        if self.activation == "swish":
            return functional.silu(x)
        gate, value = x.chunk(2, -1)
        return functional.silu(gate) * value


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = build_attention(config)
        self.feed_forward = FeedForward(config)
        self.around_attention = build_sublayer(config)
        self.around_feed_forward = build_sublayer(config)

    def forward(self, x: Tensor, mask: Tensor, turns: Tensor | None = None) -> Tensor:
        """One layer.

        Args:
            x: (B, S, D).
            mask: padding mask (B, 1, 1, S), or the causal mask (1, 1, S, S) of a language model.
            turns: how queries and keys turn at each position (B or 1, 1, S, E / 2, 2) (rotary only).

        Returns:
            (B, S, D).
        """

        def attend(x: Tensor) -> Tensor:
            query, key, value = self.self_attention.queries_keys_values(x)
            query, key = turned(query, key, turns)
            return self.self_attention.attend(query, key, value, mask)

        return self.around_feed_forward(self.around_attention(x, attend), self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention over what has been written, cross-attention to the source, feed-forward (section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = build_attention(config)
        self.cross_attention = build_attention(config)
        self.feed_forward = FeedForward(config)
        self.around_self_attention = build_sublayer(config)
        self.around_cross_attention = build_sublayer(config)
        self.around_feed_forward = build_sublayer(config)

    def keys_values(self, memory: Tensor) -> KeysValues:
        """What the target's tokens look at and what they take from it: (B, S, D) -> twice (B, H, S, E)."""
        return self.cross_attention.keys_values(memory)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        memory: KeysValues,
        memory_mask: Tensor,
        turns: Tensor | None = None,
        past: KeyValueCache | None = None,
    ) -> Tensor:
        """Whole targets in training, or new tokens after a past.

        Args:
            x: (B, T, D), the whole target, or with `past` the R rows of one new token, (R, 1, D).
            mask: causal mask (1, 1, T, T), or None for one new token, which sees all of its past.
            memory: `keys_values` of the encoder's output, each (B, H, S, E).
            memory_mask: padding mask of the source (B, 1, 1, S).
            turns: how queries and keys turn at each position (1, 1, T, E / 2, 2) (rotary only).
            past: this layer's cache; the new token is added to it.

        Returns:
            The shape of x.
        """

        def attend_to_target(x: Tensor) -> Tensor:
            query, key, value = self.self_attention.queries_keys_values(x)
            query, key = turned(query, key, turns)
            if past is not None:
                key, value = past.append(key, value)
            return self.self_attention.attend(query, key, value, mask)

        def attend_to_source(x: Tensor) -> Tensor:
            # The K rows of a sentence ask as K queries of one row: keys and values are held once a sentence.
            rows = x.unflatten(0, (memory_mask.size(0), -1)).flatten(1, 2)  # (B, K T, D)
            query = self.cross_attention.queries(rows)
            return self.cross_attention.attend(query, *memory, memory_mask).view_as(x)

        x = self.around_self_attention(x, attend_to_target)
        x = self.around_cross_attention(x, attend_to_source)
        return self.around_feed_forward(x, self.feed_forward)


def turned(query: Tensor, key: Tensor, turns: Tensor | None) -> tuple[Tensor, Tensor]:
    """Queries and keys (B, H, S, E) turned to their positions; as they are where positions are added instead."""
    return (query, key) if turns is None else (rotate_pairs(query, turns), rotate_pairs(key, turns))
