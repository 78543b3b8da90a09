"""The model as decoding computes it: the same sums with fewer and faster operations, and never a gradient.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N tokens so far of the rows of a sentence.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.model.cache import SharedPast
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import KeysValues
from manyheads.model.masks import padding_mask, position_ids
from manyheads.model.packed_layers import (
    Arrangement,
    PackedDecoderLayer,
    PackedEmbedding,
    PackedEncoderLayer,
    turns_of_heads,
)
from manyheads.model.products import Int8Product, MakeProduct, OneDnnProduct, PlainProduct, has_onednn

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
        self.source_embedding = PackedEmbedding(model.source_embedding, cast)
        self.target_embedding = PackedEmbedding(model.target_embedding, cast)
        self.places = Places(self, 0)

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
        signals = self.source_embedding.signals(positions, source.size(1))
        x = self.source_embedding(source, signals).flatten(0, 1)  # (B S, D)
        turns = None if self.model.rotary is None else turns_of_heads(self.model.rotary(positions))
        for layer in self.encoder:
            x = layer(x, source.size(0), bias, turns)
        memory = self.encoder_norm(x)
        return [layer.keys_values(memory, source.size(0)) for layer in self.decoder], bias

    def embed(self, tokens: Tensor, place: int) -> tuple[Tensor, Tensor | None]:
        """Tokens (R,) at a place of the target -> (R, D), and how queries and keys turn there (rotary only)."""
        places = self.places
        if place >= places.count:
            places = self.places = Places(self, place + 1)
        signal = None if places.signals is None else places.signals[:, place]
        return self.target_embedding(tokens, signal), None if places.turns is None else places.turns[
            :, place : place + 1
        ]

    def score(self, x: Tensor) -> Tensor:
        """Of what the last layer made (R, D), the logits of the next tokens (R, V) in float32."""
        return self.output(self.decoder_norm(x)).float()


def states(model: EncoderDecoder) -> list[tuple[int, int]]:
    """What changes whenever a weight of the model does: where each lies and how often it was written to."""
    return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in model.parameters()]


class Places:
    """The positions of places 0, 1, 2... of the target, worked out once for many.

    Attributes:
        count: of how many.
        signals: what is added to embeddings (1, count, D), if anything.
        turns: how queries and keys turn (1, count, 1, 1, E / 2, 2), if they do.
    """

    def __init__(self, packed: PackedModel, needed: int) -> None:
        """At least `needed` of them.

        Raises:
            UsageError: they are more than the model's learned positions.
        """
        rotary, limit = packed.model.rotary, packed.target_embedding.limit
        self.count = max(FIRST_PLACES, 2 * needed)
        if limit is not None:
            self.count = max(needed, min(self.count, limit))
        positions = torch.arange(self.count, device=packed.like.device)[None]
        self.signals = packed.target_embedding.signals(positions, self.count)
        self.turns: Tensor | None = None if rotary is None else turns_of_heads(rotary(positions))
