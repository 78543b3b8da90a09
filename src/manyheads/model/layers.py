"""The layers of the encoder and of the decoder (Vaswani et al. 2017, sections 3.1 and 3.3).

Shapes: B batch, S source length, T target length, D model width, H heads, E head width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.dropout import Dropout

KeysValues = tuple[Tensor, Tensor]


class PostNorm(nn.Module):
    """The residual connection of the paper, norm(x + dropout(sublayer(x))) (sections 3.1 and 5.4)."""

    def __init__(self, d_model: int, dropout: float, epsilon: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a sublayer within the residual connection: (B, S, D) -> (B, S, D)."""
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(PostNorm):
    """x + dropout(sublayer(norm(x))), which trains without a long warm-up (Xiong et al. 2020)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a sublayer within the residual connection: (B, S, D) -> (B, S, D)."""
        return x + self.dropout(sublayer(self.norm(x)))


def _build_sublayer(config: ModelConfig) -> PreNorm | PostNorm:
    """Build the residual connection around a sublayer: pre-norm or post-norm, as `model.norm` sets."""
    kind = {"pre": PreNorm, "post": PostNorm}[config.norm]
    return kind(config.d_model, config.dropout, config.norm_epsilon)


def final_norm(config: ModelConfig) -> nn.Module:
    """Build the norm after the last layer, which only pre-norm needs: its residual stream ends without a norm."""
    return nn.LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else nn.Identity()


def _build_attention(config: ModelConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.num_heads, dropout=config.attention_dropout, bias=config.bias)


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between them, the same at each position (section 3.3).

    With the activation `swiglu` (Shazeer 2020), the first map has twice the width, and one half gates the other.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = config.activation
        doubled = 2 if config.activation == "swiglu" else 1
        self.expand = nn.Linear(config.d_model, doubled * config.d_ff, bias=config.bias)
        self.contract = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        for matrix in (*self.expand.weight.split(config.d_ff), self.contract.weight):
            nn.init.xavier_uniform_(matrix)
        if config.bias:
            nn.init.zeros_(self.expand.bias)
            nn.init.zeros_(self.contract.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both maps: (B, S, D) -> (B, S, D)."""
        return self.contract(self.activate(self.expand(x)))

    def activate(self, x: Tensor) -> Tensor:
        """Apply the non-linearity: (B, S, F), or for swiglu (B, S, 2F), -> (B, S, F)."""
        match self.activation:
            case "relu":
                return functional.relu(x)
            case "gelu" | "gelu-tanh":
                return functional.gelu(x, approximate="tanh" if self.activation == "gelu-tanh" else "none")
            case "swish":
                return functional.silu(x)
            case "swiglu":
                gate, value = x.chunk(2, -1)
                return functional.silu(gate) * value


class EncoderLayer(nn.Module):
    """A layer of the encoder: self-attention, then feed-forward (section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _build_attention(config)
        self.feed_forward = FeedForward(config)
        self.around_attention = _build_sublayer(config)
        self.around_feed_forward = _build_sublayer(config)

    def forward(self, x: Tensor, mask: Tensor, cos_sin: Tensor | None = None) -> Tensor:
        """Compute the layer: (B, S, D) -> (B, S, D).

        Args:
            x: the input.
            mask: padding mask (B, 1, 1, S), or the causal mask (1, 1, S, S) of a language model.
            cos_sin: cosines and sines of rotary positions (B or 1, 1, S, E / 2, 2), or None.
        """
        x = self.around_attention(x, lambda x: self.self_attention.self_attend(x, mask, cos_sin))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """A layer of the decoder: causal self-attention, cross-attention to the source, feed-forward (section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = _build_attention(config)
        self.cross_attention = _build_attention(config)
        self.feed_forward = FeedForward(config)
        self.around_self_attention = _build_sublayer(config)
        self.around_cross_attention = _build_sublayer(config)
        self.around_feed_forward = _build_sublayer(config)

    def keys_values(self, memory: Tensor) -> KeysValues:
        """Project the encoder's output to keys and values of cross-attention: (B, S, D) -> twice (B, H, S, E)."""
        return self.cross_attention.keys_values(memory)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory: KeysValues,
        memory_mask: Tensor,
        cos_sin: Tensor | None = None,
    ) -> Tensor:
        """Compute the layer at all target positions (one at a time: `decoding/model.py`): (B, T, D) -> (B, T, D).

        Args:
            x: the input.
            mask: causal mask (1, 1, T, T).
            memory: `keys_values` of the encoder's output, each (B, H, S, E).
            memory_mask: padding mask of the source (B, 1, 1, S).
            cos_sin: cosines and sines of rotary positions (1, 1, T, E / 2, 2), or None.
        """

        def attend_to_source(x: Tensor) -> Tensor:
            return self.cross_attention.attend(self.cross_attention.queries(x), *memory, memory_mask)

        x = self.around_self_attention(x, lambda x: self.self_attention.self_attend(x, mask, cos_sin))
        x = self.around_cross_attention(x, attend_to_source)
        return self.around_feed_forward(x, self.feed_forward)
