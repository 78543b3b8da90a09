"""The model as decoding computes it: the same sums with fewer and faster operations, and never a gradient.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N tokens so far of the rows of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.model.cache import SharedPast
from manyheads.model.compiled import LONGEST, CompiledModel
from manyheads.model.descriptions import Part, Place
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
from manyheads.model.products import Precision

__all__ = ["PackedModel"]

FIRST_PLACES = 64  # of the target, whose positions are worked out at the start


class PackedModel:
    """The weights of a model, arranged for decoding.

    It computes what the model computes in eval mode, whatever mode that is in. Weights that are neither rounded nor
    of another dtype are the model's own.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        dtype: torch.dtype | None = None,
        *,
        rounding: Precision = "fp32",
        code: CompiledModel | None = None,
    ) -> None:
        """Arrange the weights.

        Args:
            model: whose they are.
            dtype: of the computation, the model's own if None.
            rounding: how matrices are rounded before that.
            code: compiled code for steps and all but long sources, if there is any.
        """
        like = model.output.weight.detach()
        self.model = model
        self.code = code
        self.dtype = dtype or like.dtype
        # Attention is in float32 at least.
        self.like = like.new_empty(0, dtype=torch.promote_types(self.dtype, torch.float32))
        cast = Arrangement(self.dtype, rounding)
        self.encoder = [PackedEncoderLayer(layer, cast) for layer in model.encoder_layers]
        self.decoder = [PackedDecoderLayer(layer, cast) for layer in model.decoder_layers]
        self.encoder_norm = cast.norm(model.encoder_norm)
        self.decoder_norm = cast.norm(model.decoder_norm)
        self.output = cast.product(model.output)
        self.weights = weights_of(model)
        self.made_of = states(self.weights)
        self.source_embedding = PackedEmbedding(model.source_embedding, cast)
        self.target_embedding = PackedEmbedding(model.target_embedding, cast)
        self.source_places = Places(self, self.source_embedding, 0)
        self.places = Places(self, self.target_embedding, 0)

    def is_current(self) -> bool:
        """Whether the model's weights are still what they were."""
        return self.made_of == states(self.weights)

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
        length = source.size(1)
        if self.code is not None and length <= LONGEST:
            return self.code.encode(source, mask[:, 0, 0], *self.start_of_source(length))
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

    def read(self, rows: Sequence[Sequence[int]]) -> list[KeysValues]:
        """Read sentences as `encode`, given as ids with their end marks; a sentence's tokens stand first."""
        lengths = np.array([*map(len, rows)])
        longest = int(lengths.max())
        if self.code is not None and longest <= LONGEST:
            tokens = np.fromiter(chain(*rows), dtype=np.int64, count=lengths.sum())
            return self.code.read(tokens, lengths, *self.start_of_source(longest))
        source = torch.full((len(rows), longest), self.model.pad, device=self.like.device)
        for place, row in enumerate(rows):
            source[place, : len(row)] = torch.tensor(row)
        return self.encode(source)[0]

    def start_of_source(self, length: int) -> tuple[Tensor | None, Tensor | None]:
        """What is added to the first embeddings (S, D), and how queries and keys turn there (S, E / 2, 2)."""
        places = self.source_places
        if length > places.count:
            places = self.source_places = Places(self, self.source_embedding, length)
        signals, turns = places.signals, places.turns
        return None if signals is None else signals[:length], None if turns is None else turns[:length]

    def at(self, place: int) -> Place:
        """What stands at a place of the target."""
        return self.first_places(place + 1).each[place]

    def first_places(self, count: int) -> Places:
        """What stands at the first places of the target, so many at least."""
        places = self.places  # other threads may have larger ones made
        if count > places.count:
            places = self.places = Places(self, self.target_embedding, count)
        return places

    def steps(self, parts: Sequence[Part]) -> list[Tensor]:
        """Append a token to each row of some parts.

        With compiled code, all parts are one call of it.

        Returns:
            Of each part, logits of the next tokens (R', V), float32.
        """
        if self.code is None:
            return [self.step_by_operators(part) for part in parts]
        found = self.code.steps(parts, self.prepared(parts))
        return [
            logits if part.live is None else logits.index_select(0, part.live)
            for part, logits in zip(parts, found, strict=True)
        ]

    def prepared(self, parts: Sequence[Part]) -> list[Place]:
        """Make room in the pasts of some parts; what stands at their places."""
        for part in parts:
            part.past.make_room(part.width)
        return [self.at(part.place) for part in parts]

    def best(
        self, parts: Sequence[Part], count: int, never: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Append a token to each row of some parts; the best next ones, as `CompiledModel.best` gives them.

        Returns:
            None, and nothing has been done, where there is no compiled code, or more is asked for than it ranks.
        """
        if self.code is None or count + len(never) >= self.model.output.out_features:
            return None
        values, tokens = self.code.best(parts, self.prepared(parts), count, never)
        if all(part.live is None for part in parts):
            return values, tokens
        sizes = [len(part.tokens) for part in parts]
        rows = np.concatenate(
            [
                first + (np.arange(size) if part.live is None else part.live.numpy())
                for part, size, first in zip(parts, sizes, np.cumsum([0, *sizes]), strict=False)
            ]
        )
        return values[rows], tokens[rows]

    def step_by_operators(self, part: Part) -> Tensor:
        """As `steps` of one part, by torch's operators."""
        signal, turns = self.at(part.place)
        x = self.target_embedding(part.tokens, signal)
        part.past.begin(part.width)
        for number, (layer, pair) in enumerate(zip(self.decoder, part.memory, strict=True)):
            x = layer.attend_to_target(x, number, part.past, turns)
            x = layer.attend_to_source(x, pair, part.source_bias)
            x = layer.feed_forward(x)
        if part.live is not None:
            x = x.index_select(0, part.live)
        return self.output(self.decoder_norm(x)).float()


def weights_of(model: EncoderDecoder) -> list[Mapping[str, Tensor | None]]:
    """Where the model's parts keep their weights."""
    return [part._parameters for part in model.modules() if part._parameters]


def states(weights: Sequence[Mapping[str, Tensor | None]]) -> list[tuple[int, int]]:
    """What changes whenever a weight does: where each lies and how often it was written to."""
    found = [one for part in weights for one in part.values() if one is not None]
    return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in found]


class Places:
    """The positions of places 0, 1, 2... of a text, worked out once for many.

    Attributes:
        count: of how many.
        signals: what is added to embeddings (count, D), if anything.
        turns: how queries and keys turn (count, E / 2, 2), if they do.
        each: both of each place.
    """

    def __init__(self, packed: PackedModel, embedding: PackedEmbedding, needed: int) -> None:
        """At least `needed` of them.

        Raises:
            UsageError: they are more than the model's learned positions.
        """
        rotary, limit = packed.model.rotary, embedding.limit
        self.count = max(FIRST_PLACES, 2 * needed)
        if limit is not None:
            self.count = max(needed, min(self.count, limit))
        positions = torch.arange(self.count, device=packed.like.device)[None]
        signals = embedding.signals(positions, self.count)
        self.signals = None if signals is None else signals[0].contiguous()
        self.turns: Tensor | None = None if rotary is None else rotary(positions)[0, 0].contiguous()
        nothing = [None] * self.count
        self.each: list[Place] = list(
            zip(
                nothing if self.signals is None else self.signals.unbind(0),
                nothing if self.turns is None else self.turns.unbind(0),
                strict=True,
            )
        )
