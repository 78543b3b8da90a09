"""The model as decoding computes it: equal results with fewer and faster operations, and without gradients.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N cached tokens of a sentence (`KVCache`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.decoding.kv_cache import KVCache
from manyheads.decoding.layers import (
    InferenceDecoderLayer,
    InferenceEmbedding,
    InferenceEncoderLayer,
    WeightLayout,
    rotary_for_qkv,
)
from manyheads.decoding.linear import Precision
from manyheads.decoding.native.model import MAX_SOURCE_LENGTH, NativeModel
from manyheads.decoding.native.structs import PositionEncoding, StepInput
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import KeysValues
from manyheads.model.masks import padding_mask, position_ids

__all__ = ["InferenceModel"]

MIN_PRECOMPUTED_POSITIONS = 64  # of source and target


class InferenceModel:
    """The weights of a model, packed for decoding.

    It computes what the model computes in evaluation mode, whatever the model's mode is. Weights that are neither
    rounded nor converted to another dtype are the model's own tensors, not copies.

    Attributes:
        model: the model that the weights belong to.
        native: the C code for this model, if it is used.
        dtype: of the computation.
        template: an empty tensor with the dtype and device of attention, float32 or wider.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        dtype: torch.dtype | None = None,
        *,
        rounding: Precision = "fp32",
        native: NativeModel | None = None,
    ) -> None:
        """Pack the weights.

        Args:
            model: the model to pack.
            dtype: of the computation; None is the model's own.
            rounding: of the matrices, before their conversion to dtype.
            native: C code that computes the steps and encodes all but long sources, if available.
        """
        weight = model.output.weight.detach()
        self.model = model
        self.native = native
        self.dtype = dtype or weight.dtype
        self.template = weight.new_empty(0, dtype=torch.promote_types(self.dtype, torch.float32))
        layout = WeightLayout(self.dtype, rounding)
        self.encoder = [InferenceEncoderLayer(layer, layout) for layer in model.encoder_layers]
        self.decoder = [InferenceDecoderLayer(layer, layout) for layer in model.decoder_layers]
        self.encoder_norm = layout.norm(model.encoder_norm)
        self.decoder_norm = layout.norm(model.decoder_norm)
        self.output = layout.linear(model.output)
        self.parameters = parameter_dicts(model)
        self.packed_versions = weight_versions(self.parameters)
        self.source_embedding = InferenceEmbedding(model.source_embedding, layout)
        self.target_embedding = InferenceEmbedding(model.target_embedding, layout)
        self.source_places = Places(self, self.source_embedding, 0)
        self.places = Places(self, self.target_embedding, 0)

    def weights_unchanged(self) -> bool:
        """Return whether the model's weights are the ones that were packed."""
        return self.packed_versions == weight_versions(self.parameters)

    def past(self, sentences: int) -> KVCache:
        """Return an empty KV cache for a number of sentences."""
        config = self.model.config
        shape = (sentences, config.num_heads, config.d_model // config.num_heads)
        return KVCache(len(self.decoder), shape, self.template)

    def encode(self, source: Tensor) -> tuple[list[KeysValues], Tensor | None]:
        """Encode the source.

        Args:
            source: (B, S).

        Returns:
            Cross-attention keys and values of each decoder layer, twice (B, H, S, E); and the attention bias that
            masks padding (B, 1, 1, S), None where there is no padding.
        """
        mask = padding_mask(source, self.model.pad)
        length = source.size(1)
        if self.native is not None and length <= MAX_SOURCE_LENGTH:
            return self.native.encode(source, mask[:, 0, 0], *self.source_positions(length))
        positions = position_ids(mask)
        bias = None
        if not bool(mask.all()):
            bias = torch.zeros(mask.shape, dtype=self.template.dtype, device=mask.device).masked_fill_(
                ~mask, -torch.inf
            )
        signals = self.source_embedding.signals(positions, source.size(1))
        x = self.source_embedding(source, signals).flatten(0, 1)  # (B S, D)
        rotary = None if self.model.rotary is None else rotary_for_qkv(self.model.rotary(positions))
        for layer in self.encoder:
            x = layer(x, source.size(0), bias, rotary)
        memory = self.encoder_norm(x)
        return [layer.keys_values(memory, source.size(0)) for layer in self.decoder], bias

    def read(self, rows: Sequence[Sequence[int]]) -> list[KeysValues]:
        """Encode sentences, given as ids with end marks; return their keys and values, padded at the end."""
        lengths = np.array([*map(len, rows)])
        longest = int(lengths.max())
        if self.native is not None and longest <= MAX_SOURCE_LENGTH:
            tokens = np.fromiter(chain(*rows), dtype=np.int64, count=lengths.sum())
            return self.native.encode_unpadded(tokens, lengths, *self.source_positions(longest))
        source = torch.full((len(rows), longest), self.model.pad, device=self.template.device)
        for index, row in enumerate(rows):
            source[index, : len(row)] = torch.tensor(row)
        return self.encode(source)[0]

    def source_positions(self, length: int) -> tuple[Tensor | None, Tensor | None]:
        """Return what is added to the embeddings (S, D), and rotary cosines and sines (S, E/2, 2), if any."""
        places = self.source_places
        if length > places.count:
            places = self.source_places = Places(self, self.source_embedding, length)
        signals, turns = places.signals, places.turns
        return None if signals is None else signals[:length], None if turns is None else turns[:length]

    def at(self, place: int) -> PositionEncoding:
        """Return the position signal (D,) and the rotary cosines and sines (E/2, 2) at a target position."""
        return self.first_places(place + 1).each[place]

    def first_places(self, count: int) -> Places:
        """Return the precomputed target positions, at least `count`."""
        places = self.places  # another thread may replace self.places
        if count > places.count:
            places = self.places = Places(self, self.target_embedding, count)
        return places

    def steps(self, parts: Sequence[StepInput]) -> list[Tensor]:
        """Append a token to each row of several inputs; native code computes all inputs in one call.

        Returns:
            For each input the logits of the next tokens (R', V), float32.
        """
        if self.native is None:
            return [self.torch_step(part) for part in parts]
        all_logits = self.native.steps(parts, self.reserve(parts))
        return [
            logits if part.live is None else logits.index_select(0, part.live)
            for part, logits in zip(parts, all_logits, strict=True)
        ]

    def reserve(self, parts: Sequence[StepInput]) -> list[PositionEncoding]:
        """Reserve the new tokens in the KV cache of each input; return the position embeddings of the inputs."""
        for part in parts:
            part.cache.reserve(part.width)
        return [self.at(part.position) for part in parts]

    def best(
        self, parts: Sequence[StepInput], count: int, never: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Append a token to each row of several inputs; return the best next tokens (`NativeModel.best_tokens`).

        Args:
            parts: inputs of R' rows in all.
            count: number of tokens to find for each row.
            never: ids that are never generated.

        Returns:
            Log-probabilities (R', count) and ids (R', count). None, without having done anything, where there is no
            native code, or the vocabulary is too small for it.
        """
        if self.native is None or count + len(never) >= self.model.output.out_features:
            return None
        values, tokens = self.native.best_tokens(parts, self.reserve(parts), count, never)
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

    def torch_step(self, part: StepInput) -> Tensor:
        """Compute `steps` of one input with torch operators."""
        signal, rotary = self.at(part.position)
        x = self.target_embedding(part.tokens, signal)
        part.cache.begin_step(part.width)
        for number, (layer, pair) in enumerate(zip(self.decoder, part.memory, strict=True)):
            x = layer.attend_to_target(x, number, part.cache, rotary)
            x = layer.attend_to_source(x, pair, part.source_bias)
            x = layer.feed_forward(x)
        if part.live is not None:
            x = x.index_select(0, part.live)
        return self.output(self.decoder_norm(x)).float()


def parameter_dicts(model: EncoderDecoder) -> list[Mapping[str, Tensor | None]]:
    """Return the parameter dictionaries of all modules of a model."""
    return [module._parameters for module in model.modules() if module._parameters]


def weight_versions(parameters: Sequence[Mapping[str, Tensor | None]]) -> list[tuple[int, int]]:
    """Return address and version counter of each weight; they change if a weight is replaced or written to."""
    weights = [weight for module in parameters for weight in module.values() if weight is not None]
    return [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]


class Places:
    """Precomputed position embeddings of the positions 0, 1, 2... of a text.

    Attributes:
        count: number of positions.
        signals: what is added to the embeddings (count, D), if anything.
        turns: rotary cosines and sines (count, E/2, 2), if the model is rotary.
        each: for each position both of them: signal (D,) and rotary (E/2, 2).
    """

    def __init__(self, packed: InferenceModel, embedding: InferenceEmbedding, needed: int) -> None:
        """Compute at least `needed` positions.

        Raises:
            UsageError: the model has fewer learned positions than that.
        """
        rotary, limit = packed.model.rotary, embedding.limit
        self.count = max(MIN_PRECOMPUTED_POSITIONS, 2 * needed)
        if limit is not None:
            self.count = max(needed, min(self.count, limit))
        positions = torch.arange(self.count, device=packed.template.device)[None]
        signals = embedding.signals(positions, self.count)
        self.signals = None if signals is None else signals[0].contiguous()
        self.turns: Tensor | None = None if rotary is None else rotary(positions)[0, 0].contiguous()
        nothing = [None] * self.count
        self.each = [
            PositionEncoding(signal, cos_sin)
            for signal, cos_sin in zip(
                nothing if self.signals is None else self.signals.unbind(0),
                nothing if self.turns is None else self.turns.unbind(0),
                strict=True,
            )
        ]
