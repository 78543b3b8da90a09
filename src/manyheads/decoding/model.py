"""The model for decoding: equal results with fewer and faster operations, and without gradients.

Shapes: B or G sentences, W rows (hypotheses in progress) each, R = G x W, S source length, D model width, H heads,
E head width, N cached tokens of a sentence (`KVCache`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from manyheads.decoding.kv_cache import KVCache, StepInput
from manyheads.decoding.layers import (
    InferenceDecoderLayer,
    InferenceEmbedding,
    InferenceEncoderLayer,
    WeightLayout,
    rotary_for_qkv,
)
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import KeysValues
from manyheads.model.masks import position_ids, source_mask

_MIN_PRECOMPUTED_POSITIONS = 64  # target positions
# The vector added to the embedding of a token (D,), and the cosines and sines of rotary positions (E / 2, 2), if
# any.
PositionEncoding = tuple[Tensor | None, Tensor | None]


class InferenceModel:
    """The weights of a model, packed for decoding.

    The results are those of the model in evaluation mode, in whatever mode the model is. Weights that are neither
    rounded nor converted to another dtype are the model's own tensors, not copies.

    Attributes:
        model: the model that the weights belong to.
        dtype: dtype of the computation.
        template: an empty tensor with the dtype and device of attention, float32 or wider.
    """

    def __init__(
        self, model: EncoderDecoder, dtype: torch.dtype | None = None, *, rounding: torch.dtype | None = None
    ) -> None:
        """Pack the weights in `dtype`, by default that of the model, after rounding matrices to `rounding`."""
        weight = model.output.weight.detach()
        self.model = model
        self.dtype = dtype or weight.dtype
        self.template = weight.new_empty(0, dtype=torch.promote_types(self.dtype, torch.float32))
        layout = WeightLayout(self.dtype, rounding)
        self.encoder = [InferenceEncoderLayer(layer, layout) for layer in model.encoder_layers]
        self.decoder = [InferenceDecoderLayer(layer, layout) for layer in model.decoder_layers]
        self.encoder_norm = layout.norm(model.encoder_norm)
        self.decoder_norm = layout.norm(model.decoder_norm)
        self.output = layout.linear(model.output)
        self.parameters = [module._parameters for module in model.modules() if module._parameters]
        self.packed_versions = _weight_versions(self.parameters)
        self.source_embedding = InferenceEmbedding(model.source_embedding, layout)
        self.target_embedding = InferenceEmbedding(model.target_embedding, layout)
        self.encodings: list[PositionEncoding] = []  # of the first target positions

    def weights_unchanged(self) -> bool:
        """Return whether the model's weights are unchanged since they were packed."""
        return self.packed_versions == _weight_versions(self.parameters)

    def new_cache(self, sentences: int) -> KVCache:
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
        mask = source_mask(source, self.model.pad, self.model.unread)
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

    def step(self, step: StepInput) -> Tensor:
        """Append a token to each row; return the logits of the next tokens (R', V), float32."""
        signal, rotary = self.position_encoding(step.position)
        x = self.target_embedding(step.tokens, signal)
        step.cache.begin_step(step.width)
        for number, (layer, pair) in enumerate(zip(self.decoder, step.memory, strict=True)):
            x = layer.attend_to_target(x, number, step.cache, rotary)
            x = layer.attend_to_source(x, pair, step.source_bias)
            x = layer.feed_forward(x)
        if step.live is not None:
            x = x.index_select(0, step.live)
        return self.output(self.decoder_norm(x)).float()

    def position_encoding(self, position: int) -> PositionEncoding:
        """Return the encoding of a target position; the first encodings are computed together."""
        encodings = self.encodings  # another thread may replace self.encodings
        if position >= len(encodings):
            limit = self.target_embedding.limit
            count = max(_MIN_PRECOMPUTED_POSITIONS, 2 * position + 2)
            count = count if limit is None else max(position + 1, min(count, limit))
            positions = torch.arange(count, device=self.template.device)[None]
            signals, rotary = self.target_embedding.signals(positions, count), self.model.rotary
            nothing: list[None] = [None] * count
            self.encodings = encodings = list(
                zip(
                    nothing if signals is None else signals[0].unbind(0),
                    nothing if rotary is None else rotary(positions)[0, 0].unbind(0),
                    strict=True,
                )
            )
        return encodings[position]


def _weight_versions(parameters: Sequence[Mapping[str, Tensor | None]]) -> list[tuple[int, int]]:
    """Return address and version counter of each weight; they change if a weight is replaced or written to."""
    weights = [weight for module in parameters for weight in module.values() if weight is not None]
    return [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]
