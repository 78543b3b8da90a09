"""The Transformer of the paper: an encoder for the source, a decoder for the target (section 3.1).

Shapes: B batch, S source length, T target length, D model width, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer, final_norm
from manyheads.model.masks import causal_mask, position_ids, source_mask
from manyheads.model.transformer import Transformer


class EncoderDecoder(Transformer):
    """An encoder-decoder model: the source and the target so far in, the logits of the next target tokens out."""

    encoder_layers: Sequence[EncoderLayer]
    decoder_layers: Sequence[DecoderLayer]

    def __init__(
        self, config: ModelConfig, source_size: int, target_size: int, *, pad: int = 1, eos: int = 3
    ) -> None:
        super().__init__(config, pad)
        self.unread = None if config.source_end_mark else eos
        self.source_embedding = TokenEmbedding(config, source_size, pad)
        self.target_embedding = TokenEmbedding(config, target_size, pad)
        encoder = [EncoderLayer(config) for _ in range(config.num_encoder_layers)]
        decoder = [DecoderLayer(config) for _ in range(config.num_decoder_layers)]
        self.encoder_layers = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.decoder_layers = nn.ModuleList(decoder)  # type: ignore[assignment]
        self.encoder_norm, self.decoder_norm = final_norm(config), final_norm(config)
        self.output = nn.Linear(config.d_model, target_size, bias=config.bias)
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.bias:
            nn.init.zeros_(self.output.bias)
        self.tie()

    def tie(self) -> None:
        """Share one matrix between the embeddings and the output layer that `model.tied_embeddings` names (3.4)."""
        if self.config.tied_embeddings != "none":
            self.output.weight = self.target_embedding.tokens.weight
        if self.config.tied_embeddings == "all":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight

    def layers(self) -> Iterator[EncoderLayer | DecoderLayer]:
        """Yield the layers of the encoder, then those of the decoder."""
        yield from self.encoder_layers
        yield from self.decoder_layers

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute logits by teacher forcing: source (B, S), target_in (B, T) -> (B, T, V)."""
        return self.output(self.decode(target, *self.encode(source)))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encode the source: (B, S) -> memory (B, S, D) and its padding mask (B, 1, 1, S)."""
        mask = source_mask(source, self.pad, self.unread)
        positions = position_ids(mask)
        x = self.source_embedding(source, positions, source.size(1))
        cos_sin = self.rotary_cos_sin(positions)
        for layer in self.encoder_layers:
            x = layer(x, mask, cos_sin)
        return self.encoder_norm(x), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Compute the hidden states of whole targets by teacher forcing: -> (B, T, D).

        Args:
            target: the target shifted right (B, T), padded at the end.
            memory: output of the encoder (B, S, D).
            memory_mask: padding mask of the source (B, 1, 1, S).
        """
        length = target.size(1)
        positions = torch.arange(length, device=target.device)[None]
        x = self.target_embedding(target, positions, length)
        mask = causal_mask(length, target.device)
        cos_sin = self.rotary_cos_sin(positions)
        for layer in self.decoder_layers:
            x = layer(x, mask, layer.keys_values(memory), memory_mask, cos_sin)
        return self.decoder_norm(x)
