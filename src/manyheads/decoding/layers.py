"""The layers of a model for decoding: equal results, with fewer and faster operations.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N cached tokens of a sentence (`KVCache`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.decoding.kv_cache import KVCache
from manyheads.decoding.linear import InferenceLinear, TensorFunction
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer, KeysValues, PostNorm, PreNorm
from manyheads.model.positions import LearnedPositions, apply_rotary

_MAX_SENTENCES_FOR_FUSED_ATTENTION = 4  # more sentences are faster as separate matrix products


class WeightLayout:
    """The dtype of the computation, and the dtype to which matrices are rounded before, if any."""

    def __init__(self, dtype: torch.dtype, rounding: torch.dtype | None = None) -> None:
        self.dtype = dtype
        self.rounding = rounding

    def linear(self, linear: nn.Linear, first: int = 0, last: int | None = None) -> TensorFunction:
        """Return a linear layer, or only its outputs first to last - 1."""
        bias = None if linear.bias is None else linear.bias.detach()[first:last]
        return InferenceLinear(linear.weight.detach()[first:last], bias, self.dtype, self.rounding)

    def norm(self, norm: nn.Module) -> TensorFunction:
        """Return a layer norm; the identity where the model has none."""
        if not isinstance(norm, nn.LayerNorm):
            return _identity
        shape, epsilon = list(norm.normalized_shape), norm.eps
        weight, bias = norm.weight.detach().to(self.dtype), norm.bias.detach().to(self.dtype)
        return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)

    def norms_around(self, sublayer: PreNorm | PostNorm) -> tuple[TensorFunction, TensorFunction]:
        """Return the norms before a sublayer and after its residual connection; one of them is the identity."""
        norm = self.norm(sublayer.norm)
        return (norm, _identity) if isinstance(sublayer, PreNorm) else (_identity, norm)


class InferenceEmbedding:
    """`TokenEmbedding` in evaluation mode.

    Attributes:
        table: token embeddings (V, D).
        limit: number of learned positions; None where positions are unlimited.
    """

    def __init__(self, embedding: TokenEmbedding, layout: WeightLayout) -> None:
        self.table = embedding.tokens.weight.detach()
        self.scale = embedding.scale
        self.positions = embedding.positions
        self.type = None if embedding.types is None else embedding.types.weight.detach()[0]
        self.norm = layout.norm(embedding.norm)
        self.dtype = layout.dtype
        self.limit: int | None = None
        if isinstance(embedding.positions, LearnedPositions):
            self.limit = embedding.positions.table.num_embeddings

    def signals(self, positions: Tensor, length: int) -> Tensor | None:
        """Return the sum of position and type embeddings at positions (B, S), all < `length`: (B, S, D)."""
        if self.positions is None:
            return None if self.type is None else self.type.expand(*positions.shape, -1)
        added: Tensor = self.positions(positions, length).detach()
        return added if self.type is None else added + self.type

    def __call__(self, ids: Tensor, signals: Tensor | None) -> Tensor:
        """Embed ids (...) and add `signals` (..., D), if any: -> (..., D)."""
        tokens = functional.embedding(ids, self.table)
        x = tokens * self.scale if signals is None else torch.add(signals, tokens, alpha=self.scale)
        return self.norm(x.to(self.dtype))


class InferenceEncoderLayer:
    """`EncoderLayer` in evaluation mode."""

    def __init__(self, layer: EncoderLayer, layout: WeightLayout) -> None:
        self.attention = _InferenceSelfAttention(layer.self_attention, layout)
        self.feed_forward = _InferenceFeedForward(layer, layout)
        self.before, self.after = layout.norms_around(layer.around_attention)

    def __call__(self, x: Tensor, sentences: int, bias: Tensor | None, rotary: Tensor | None) -> Tensor:
        """Compute the layer: (B S, D) of B sentences -> (B S, D); bias (B, 1, 1, S) masks padding."""
        query, key, value = self.attention.queries_keys_values(self.before(x), sentences, rotary).unbind(0)
        context = _merge_heads(functional.scaled_dot_product_attention(query, key, value, attn_mask=bias), x.dtype)
        return self.feed_forward(self.after(self.attention.project_out(context).add_(x)))


class InferenceDecoderLayer:
    """`DecoderLayer` in evaluation mode, for one new token a row."""

    def __init__(self, layer: DecoderLayer, layout: WeightLayout) -> None:
        width = layer.cross_attention.project_out.in_features
        self.attention = _InferenceSelfAttention(layer.self_attention, layout)
        self.num_heads = layer.cross_attention.num_heads
        self.head_width = width // self.num_heads
        self.cross_query = layout.linear(layer.cross_attention.project_in, 0, width)
        self.cross_keys_values = layout.linear(layer.cross_attention.project_in, width)
        self.cross_out = layout.linear(layer.cross_attention.project_out)
        self.feed_forward = _InferenceFeedForward(layer, layout)
        self.before, self.after = layout.norms_around(layer.around_self_attention)
        self.before_cross, self.after_cross = layout.norms_around(layer.around_cross_attention)

    def keys_values(self, memory: Tensor, sentences: int) -> KeysValues:
        """Return the cross-attention keys and values of the source: (B S, D) -> twice (B, H, S, E)."""
        both = _to_float32(self.cross_keys_values(memory)).view(sentences, -1, 2, self.num_heads, self.head_width)
        keys, values = both.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
        return keys, values

    def attend_to_target(self, x: Tensor, layer: int, cache: KVCache, rotary: Tensor | None) -> Tensor:
        """Attend to the cached tokens and to the new token: (R, D) -> (R, D)."""
        qkv = self.attention.queries_keys_values(self.before(x), cache.store.size(2), rotary)
        context = _merge_heads(_attend(qkv[0], *cache.append(layer, qkv.narrow(0, 1, 2))), x.dtype)
        return self.after(self.attention.project_out(context).add_(x))

    def attend_to_source(self, x: Tensor, memory: KeysValues, bias: Tensor | None) -> Tensor:
        """Attend to the source; the rows of a sentence are queries of the same keys: (R, D) -> (R, D)."""
        query = _to_float32(self.cross_query(self.before_cross(x)))
        query = query.view(memory[0].size(0), -1, self.num_heads, self.head_width).transpose(1, 2)
        context = _merge_heads(_attend(query, *memory, bias), x.dtype)
        return self.after_cross(self.cross_out(context).add_(x))


class _InferenceSelfAttention:
    """The projections of a `MultiHeadAttention` used as self-attention."""

    def __init__(self, attention: MultiHeadAttention, layout: WeightLayout) -> None:
        self.num_heads = attention.num_heads
        self.project_in = layout.linear(attention.project_in)
        self.project_out = layout.linear(attention.project_out)

    def queries_keys_values(self, x: Tensor, sentences: int, rotary: Tensor | None) -> Tensor:
        """Project: (B T, D) of B sentences -> (3, B, H, T, E), with rotary positions in queries and keys."""
        qkv = _to_float32(self.project_in(x)).view(sentences, -1, 3, self.num_heads, x.size(1) // self.num_heads)
        if rotary is not None:
            queries_keys = qkv.narrow(2, 0, 2)
            queries_keys.copy_(apply_rotary(queries_keys, rotary))
        return qkv.permute(2, 0, 3, 1, 4)


class _InferenceFeedForward:
    """`FeedForward` with its norm and residual connection, in evaluation mode."""

    def __init__(self, layer: EncoderLayer | DecoderLayer, layout: WeightLayout) -> None:
        feed_forward = layer.feed_forward
        self.activate: TensorFunction = torch.relu_ if feed_forward.activation == "relu" else feed_forward.activate
        self.expand = layout.linear(layer.feed_forward.expand)
        self.contract = layout.linear(layer.feed_forward.contract)
        self.before, self.after = layout.norms_around(layer.around_feed_forward)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the layer: (R, D) -> (R, D)."""
        return self.after(self.contract(self.activate(self.expand(self.before(x)))).add_(x))


def _attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Attend with few queries a sentence: (G, H, W, E), twice (G, H, S, E), (G, 1, 1 or W, S) -> (G, H, W, E).

    Three separate operations take 50 to 80 % of the time of torch's fused kernel, which is made for more queries;
    for a few sentences the single call of the fused kernel is faster.
    """
    sentences, heads, width, head_width = query.shape
    if sentences <= _MAX_SENTENCES_FOR_FUSED_ATTENTION:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    batches, length = sentences * heads, key.size(2)
    keys, values = key.reshape(batches, length, head_width), value.reshape(batches, length, head_width)
    queries, scale = query.reshape(batches, width, head_width), head_width**-0.5
    scores = torch.baddbmm(queries.new_empty(1, 1, 1), queries, keys.transpose(1, 2), beta=0, alpha=scale)
    if bias is not None:
        scores.view(sentences, heads, width, length).add_(bias)
    return torch.bmm(scores.softmax(-1), values).view(sentences, heads, width, head_width)


def _merge_heads(heads: Tensor, dtype: torch.dtype) -> Tensor:
    """Concatenate the heads: (B, H, T, E) -> (B T, D)."""
    return heads.transpose(1, 2).reshape(-1, heads.size(1) * heads.size(3)).to(dtype)


def _to_float32(x: Tensor) -> Tensor:
    """Convert bfloat16 to float32; keep other dtypes."""
    return x.float() if x.dtype == torch.bfloat16 else x


def rotary_for_qkv(rotary: Tensor) -> Tensor:
    """Add the axis of queries and keys to rotary cosines and sines: (B, 1, T, E/2, 2) -> (B, T, 1, 1, E/2, 2)."""
    return rotary.transpose(1, 2).unsqueeze(3)


def _identity(x: Tensor) -> Tensor:
    """Return the input, in the place of a missing norm."""
    return x
