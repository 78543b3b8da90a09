"""The parts of a model as decoding computes them (`packed.py`): the same sums with fewer and faster operations.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N tokens so far of the rows of a sentence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.attention import MultiHeadAttention
from manyheads.model.cache import SharedPast
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer, KeysValues, PostNorm, PreNorm
from manyheads.model.positions import LearnedPositions, rotate_pairs_in_place
from manyheads.model.products import LinearProduct, Precision, Product

__all__ = ["Arrangement", "PackedDecoderLayer", "PackedEmbedding", "PackedEncoderLayer", "turns_of_heads"]

FEW_SENTENCES = 4


class Arrangement:
    """How the weights of a model are prepared: the dtype of the computation, and how matrices are rounded."""

    def __init__(self, dtype: torch.dtype, rounding: Precision = "fp32") -> None:
        self.dtype = dtype
        self.rounding = rounding

    def product(self, linear: nn.Linear, first: int = 0, last: int | None = None) -> Product:
        """The product of a linear layer, or of its outputs first..last."""
        bias = None if linear.bias is None else linear.bias.detach()[first:last]
        return LinearProduct(linear.weight.detach()[first:last], bias, self.dtype, self.rounding)

    def norm(self, norm: nn.Module) -> Product:
        """A layer norm, or what stands in its place where there is none."""
        if not isinstance(norm, nn.LayerNorm):
            return unchanged
        shape, epsilon = list(norm.normalized_shape), norm.eps
        weight, bias = norm.weight.detach().to(self.dtype), norm.bias.detach().to(self.dtype)
        return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)

    def around(self, sublayer: PreNorm | PostNorm) -> tuple[Product, Product]:
        """What is done before a sublayer, and after the residual connection."""
        norm = self.norm(sublayer.norm)
        return (norm, unchanged) if isinstance(sublayer, PreNorm) else (unchanged, norm)


class PackedEmbedding:
    """`TokenEmbedding` in eval mode.

    Attributes:
        limit: of its positions, None where they go on for ever.
    """

    def __init__(self, embedding: TokenEmbedding, cast: Arrangement) -> None:
        self.table = embedding.tokens.weight.detach()
        self.scale = embedding.scale
        self.positions = embedding.positions
        self.type = None if embedding.types is None else embedding.types.weight.detach()[0]
        self.norm = cast.norm(embedding.norm)
        self.dtype = cast.dtype
        self.limit: int | None = None
        if isinstance(embedding.positions, LearnedPositions):
            self.limit = embedding.positions.table.num_embeddings

    def signals(self, positions: Tensor, length: int) -> Tensor | None:
        """What is added at positions (B, S), all below `length`: (B, S, D), if anything."""
        if self.positions is None:
            return None if self.type is None else self.type.expand(*positions.shape, -1)
        added: Tensor = self.positions(positions, length).detach()
        return added if self.type is None else added + self.type

    def __call__(self, ids: Tensor, signals: Tensor | None) -> Tensor:
        """Ids of any shape and what is added to them -> that shape and D."""
        tokens = functional.embedding(ids, self.table)
        x = tokens * self.scale if signals is None else torch.add(signals, tokens, alpha=self.scale)
        return self.norm(x.to(self.dtype))


class PackedEncoderLayer:
    """`EncoderLayer` in eval mode."""

    def __init__(self, layer: EncoderLayer, cast: Arrangement) -> None:
        self.attention = PackedSelfAttention(layer.self_attention, cast)
        self.feed_forward = PackedFeedForward(layer, cast)
        self.before, self.after = cast.around(layer.around_attention)

    def __call__(self, x: Tensor, sentences: int, bias: Tensor | None, turns: Tensor | None) -> Tensor:
        """(B S, D) of B sentences -> (B S, D)."""
        query, key, value = self.attention.queries_keys_values(self.before(x), sentences, turns).unbind(0)
        mixed = merged(functional.scaled_dot_product_attention(query, key, value, attn_mask=bias), x.dtype)
        return self.feed_forward(self.after(self.attention.project_out(mixed).add_(x)))


class PackedDecoderLayer:
    """`DecoderLayer` in eval mode, for one new token a row."""

    def __init__(self, layer: DecoderLayer, cast: Arrangement) -> None:
        width = layer.cross_attention.project_out.in_features
        self.attention = PackedSelfAttention(layer.self_attention, cast)
        self.num_heads = layer.cross_attention.num_heads
        self.head_width = width // self.num_heads
        self.cross_query = cast.product(layer.cross_attention.project_in, 0, width)
        self.cross_keys_values = cast.product(layer.cross_attention.project_in, width)
        self.cross_out = cast.product(layer.cross_attention.project_out)
        self.feed_forward = PackedFeedForward(layer, cast)
        self.before, self.after = cast.around(layer.around_self_attention)
        self.before_cross, self.after_cross = cast.around(layer.around_cross_attention)

    def keys_values(self, memory: Tensor, sentences: int) -> KeysValues:
        """What the target's tokens look at and what they take from it: (B S, D) -> twice (B, H, S, E)."""
        both = wide(self.cross_keys_values(memory)).view(sentences, -1, 2, self.num_heads, self.head_width)
        keys, values = both.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
        return keys, values

    def attend_to_target(self, x: Tensor, layer: int, past: SharedPast, turns: Tensor | None) -> Tensor:
        """Self-attention over what has been written, this token included: (R, D) -> (R, D)."""
        thirds = self.attention.queries_keys_values(self.before(x), past.store.size(2), turns)
        mixed = merged(attended(thirds[0], *past.append(layer, thirds.narrow(0, 1, 2))), x.dtype)
        return self.after(self.attention.project_out(mixed).add_(x))

    def attend_to_source(self, x: Tensor, memory: KeysValues, bias: Tensor | None) -> Tensor:
        """Cross-attention; the rows of a sentence ask for its keys together: (R, D) -> (R, D)."""
        query = wide(self.cross_query(self.before_cross(x)))
        query = query.view(memory[0].size(0), -1, self.num_heads, self.head_width).transpose(1, 2)
        mixed = merged(attended(query, *memory, bias), x.dtype)
        return self.after_cross(self.cross_out(mixed).add_(x))


class PackedSelfAttention:
    """The products of a `MultiHeadAttention` of a text with itself."""

    def __init__(self, attention: MultiHeadAttention, cast: Arrangement) -> None:
        self.num_heads = attention.num_heads
        self.project_in = cast.product(attention.project_in)
        self.project_out = cast.product(attention.project_out)

    def queries_keys_values(self, x: Tensor, sentences: int, turns: Tensor | None) -> Tensor:
        """(B T, D) of B sentences -> (3, B, H, T, E), queries and keys turned to their positions."""
        thirds = wide(self.project_in(x)).view(sentences, -1, 3, self.num_heads, x.size(1) // self.num_heads)
        if turns is not None:
            rotate_pairs_in_place(thirds.narrow(2, 0, 2), turns)
        return thirds.permute(2, 0, 3, 1, 4)


class PackedFeedForward:
    """`FeedForward` and what is around it, in eval mode."""

    def __init__(self, layer: EncoderLayer | DecoderLayer, cast: Arrangement) -> None:
        activation = layer.feed_forward
        self.activate: Product = torch.relu_ if activation.activation == "relu" else activation.activate
        self.expand = cast.product(layer.feed_forward.expand)
        self.contract = cast.product(layer.feed_forward.contract)
        self.before, self.after = cast.around(layer.around_feed_forward)

    def __call__(self, x: Tensor) -> Tensor:
        """(R, D) -> (R, D)."""
        return self.after(self.contract(self.activate(self.expand(self.before(x)))).add_(x))


def attended(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of few queries a sentence: (G, H, W, E), twice (G, H, S, E) and (G, 1, 1 or W, S) -> (G, H, W, E).

    As three operations it takes half to four fifths of the time of torch's fused kernel, which is made for more
    queries; only for a few sentences its one call is the cheaper.
    """
    sentences, heads, width, head_width = query.shape
    if sentences <= FEW_SENTENCES:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    together, length = sentences * heads, key.size(2)
    keys, values = key.reshape(together, length, head_width), value.reshape(together, length, head_width)
    queries, scale = query.reshape(together, width, head_width), head_width**-0.5
    scores = torch.baddbmm(queries.new_empty(1, 1, 1), queries, keys.transpose(1, 2), beta=0, alpha=scale)
    if bias is not None:
        scores.view(sentences, heads, width, length).add_(bias)
    return torch.bmm(scores.softmax(-1), values).view(sentences, heads, width, head_width)


def merged(heads: Tensor, dtype: torch.dtype) -> Tensor:
    """Put the heads side by side: (B, H, T, E) -> (B T, D)."""
    return heads.transpose(1, 2).reshape(-1, heads.size(1) * heads.size(3)).to(dtype)


def wide(x: Tensor) -> Tensor:
    """At least float32."""
    return x.float() if x.dtype == torch.bfloat16 else x


def turns_of_heads(turns: Tensor) -> Tensor:
    """`RotaryPositions` for queries and keys side by side: (B, 1, T, E / 2, 2) -> (B, T, 1, 1, E / 2, 2)."""
    return turns.transpose(1, 2).unsqueeze(3)


def unchanged(x: Tensor) -> Tensor:
    """What stands where there is no norm."""
    return x
