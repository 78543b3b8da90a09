"""The model as decoding computes it: the same sums with fewer and faster operations, and never a gradient.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N tokens so far of the rows of a sentence.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.errors import UsageError
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.cache import SharedPast
from manyheads.model.encoder_decoder import EncoderDecoder, TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer, KeysValues, PostNorm, PreNorm
from manyheads.model.masks import padding_mask, position_ids
from manyheads.model.positions import LearnedPositions, rotate_pairs_in_place
from manyheads.model.products import Int8Product, MakeProduct, OneDnnProduct, PlainProduct, Product, has_onednn

__all__ = ["PRECISIONS", "PackedModel", "Precision", "pack", "pick_format"]

Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
FIRST_PLACES = 64  # of the target, whose positions are worked out at the start


def pick_format(precision: str) -> Precision:
    """A number format by its name; raises `UsageError`."""
    for one in PRECISIONS:
        if one == precision:
            return one
    raise UsageError(f'there is no precision "{precision}". Use one of {", ".join(PRECISIONS)}.')


def pack(model: EncoderDecoder, precision: Precision = "fp32") -> PackedModel:
    """Arrange the weights of a model for fast decoding on its device.

    Args:
        model: on the device where it will be.
        precision: "fp32" computes what the model computes; "bf16" rounds weights and all between to 8 significant
            bits; "int8" the weights to 8 bits with a scale for each output, and all between as bf16 does.

    Raises:
        UsageError: the device has no such products.
    """
    weight = model.output.weight
    onednn = weight.device.type == "cpu" and has_onednn()
    if precision == "int8" and not onednn:
        raise UsageError(f'precision "int8" is for a CPU with oneDNN, not for {weight.device.type}. Use "bf16".')
    if precision == "int8":
        return PackedModel(model, Int8Product, torch.bfloat16)
    dtype = torch.bfloat16 if precision == "bf16" else weight.dtype
    fast = onednn and dtype in (torch.float32, torch.bfloat16)
    return PackedModel(model, OneDnnProduct if fast else PlainProduct, dtype)


class PackedModel:
    """The weights of a model, arranged for decoding.

    It computes what the model computes in eval mode, whatever mode that is in. Plain products hold no weights of
    their own, and always have the model's present ones; others hold a copy from when they were made.
    """

    def __init__(
        self, model: EncoderDecoder, make: MakeProduct = PlainProduct, dtype: torch.dtype | None = None
    ) -> None:
        """Arrange the weights.

        Args:
            model: whose they are.
            make: how products are computed.
            dtype: number format of the computation, the model's own if None.
        """
        like = model.output.weight.detach()
        self.model = model
        self.dtype = dtype or like.dtype
        # Attention is in float32 at least: the kernels that it needs are slower in bf16.
        self.like = like.new_empty(0, dtype=torch.promote_types(self.dtype, torch.float32))
        cast = Arrangement(make, self.dtype)
        self.encoder = [PackedEncoderLayer(layer, cast) for layer in model.encoder_layers]
        self.decoder = [PackedDecoderLayer(layer, cast) for layer in model.decoder_layers]
        self.encoder_norm = cast.norm(model.encoder_norm)
        self.decoder_norm = cast.norm(model.decoder_norm)
        self.output = cast.product(model.output)
        self.made_of = states(model)
        self.places = Places(model, 0)

    def is_current(self) -> bool:
        """Whether the model's weights are still what they were."""
        return self.made_of == states(self.model)

    def past(self, sentences: int) -> SharedPast:
        """An empty past for so many sentences."""
        config = self.model.config
        shape = (sentences, config.num_heads, config.d_model // config.num_heads)
        return SharedPast(len(self.decoder), shape, self.like)

    def encode(self, source: Tensor) -> tuple[list[KeysValues], Tensor | None]:
        """Read the source.

        Args:
            source: (B, S).

        Returns:
            Of each decoder layer what its tokens look at and what they take from it, twice (B, H, S, E); and what
            is added to the scores of attention to hide padding (B, 1, 1, S), None where there is no padding.
        """
        mask = padding_mask(source, self.model.pad)
        positions = position_ids(mask)
        bias = None
        if not bool(mask.all()):
            bias = torch.zeros(mask.shape, dtype=self.like.dtype, device=mask.device).masked_fill_(
                ~mask, -torch.inf
            )
        embedding = self.model.source_embedding
        added = embedding.positions
        signals = None if added is None else added(positions, source.size(1)).detach()
        x = embedded(embedding, source, signals).to(self.dtype).flatten(0, 1)  # (B S, D)
        turns = None if self.model.rotary is None else turns_of_heads(self.model.rotary(positions))
        for layer in self.encoder:
            x = layer(x, source.size(0), bias, turns)
        memory = self.encoder_norm(x)
        return [layer.keys_values(memory, source.size(0)) for layer in self.decoder], bias

    def embed(self, tokens: Tensor, place: int) -> tuple[Tensor, Tensor | None]:
        """Tokens (R,) at a place of the target -> (R, D), and how queries and keys turn there (rotary only)."""
        places = self.places
        if place >= places.count:
            places = self.places = Places(self.model, place + 1)
        signal = None if places.signals is None else places.signals[:, place]
        x = embedded(self.model.target_embedding, tokens, signal).to(self.dtype)
        return x, None if places.turns is None else places.turns[:, place : place + 1]

    def score(self, x: Tensor) -> Tensor:
        """Of what the last layer made (R, D), the logits of the next tokens (R, V) in float32."""
        return self.output(self.decoder_norm(x)).float()


class Places:
    """The positions of places 0, 1, 2... of the target, worked out once for many.

    Attributes:
        count: of how many.
        signals: what is added to embeddings (1, count, D), if anything.
        turns: how queries and keys turn (1, count, 1, 1, E / 2, 2), if they do.
    """

    def __init__(self, model: EncoderDecoder, needed: int) -> None:
        """At least `needed` of them.

        Raises:
            UsageError: they are more than the model's learned positions.
        """
        added, rotary = model.target_embedding.positions, model.rotary
        self.count = max(FIRST_PLACES, 2 * needed)
        if isinstance(added, LearnedPositions):
            self.count = max(needed, min(self.count, added.table.num_embeddings))
        positions = torch.arange(self.count, device=model.output.weight.device)[None]
        self.signals: Tensor | None = None if added is None else added(positions, self.count).detach()
        self.turns: Tensor | None = None if rotary is None else turns_of_heads(rotary(positions))


class Arrangement:
    """How weights are arranged: for which products, in which number format."""

    def __init__(self, make: MakeProduct, dtype: torch.dtype) -> None:
        self.make = make
        self.dtype = dtype

    def product(self, linear: nn.Linear, first: int = 0, last: int | None = None) -> Product:
        """The product of a linear layer, or of its outputs first..last."""
        bias = None if linear.bias is None else linear.bias.detach()[first:last]
        return self.make(linear.weight.detach()[first:last], bias, self.dtype)

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


def states(model: EncoderDecoder) -> list[tuple[int, int]]:
    """What changes whenever a weight of the model does: where each lies and how often it was written to."""
    return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in model.parameters()]


def embedded(embedding: TokenEmbedding, ids: Tensor, signal: Tensor | None) -> Tensor:
    """`TokenEmbedding` in eval mode: ids of any shape, signals that go with it -> that shape and D."""
    tokens = functional.embedding(ids, embedding.tokens.weight.detach())
    return tokens * embedding.scale if signal is None else torch.add(signal, tokens, alpha=embedding.scale)


def attended(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of few queries a sentence: (G, H, W, E), twice (G, H, S, E) and (G, 1, 1 or W, S) -> (G, H, W, E).

    As three operations it takes half to four fifths of the time of torch's fused kernel, which is made for more.
    """
    sentences, heads, width, head_width = query.shape
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
