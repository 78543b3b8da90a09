"""Encoder-only models: every token sees all others (BERT: Devlin et al. 2019, section 3).

Shapes: B batch, S length, D model width, C classes, V vocabulary, N places asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.dropout import Dropout
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import EncoderLayer, final_norm
from manyheads.model.masks import padding_mask, position_ids
from manyheads.model.positions import RotaryPositions
from manyheads.model.transformer import Transformer

__all__ = ["EncoderOnly", "MaskedLanguageModel", "TextClassifier", "mean_of_real"]


class EncoderOnly(Transformer):
    """A text in, a vector for each of its tokens out."""

    encoder_layers: Sequence[EncoderLayer]

    def __init__(self, config: ModelConfig, size: int, *, pad: int = 1) -> None:
        super().__init__(config, pad)
        self.embedding = TokenEmbedding(config, size, pad)
        layers = [EncoderLayer(config) for _ in range(config.num_encoder_layers)]
        self.encoder_layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.encoder_norm = final_norm(config)
        rotary = config.positions == "rotary"
        self.rotary = RotaryPositions(config.d_model // config.num_heads) if rotary else None

    def layers(self) -> Iterator[EncoderLayer]:
        """Lowest first."""
        yield from self.encoder_layers

    def encode(self, ids: Tensor, types: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Read texts.

        Args:
            ids: (B, S).
            types: which of several texts each token is of (B, S), 0 unless given; for models with token types.

        Returns:
            Hidden states (B, S, D), and the padding mask (B, 1, 1, S).
        """
        mask = padding_mask(ids, self.pad)
        positions = position_ids(mask)
        x = self.embedding(ids, positions, ids.size(1), types)
        turns = None if self.rotary is None else self.rotary(positions)
        for layer in self.encoder_layers:
            x = layer(x, mask, turns)
        return self.encoder_norm(x), mask


class TextClassifier(EncoderOnly):
    """An encoder whose pooled output is one of C classes: pooled -> linear -> tanh or relu -> dropout -> linear."""

    def __init__(self, config: ModelConfig, size: int, classes: int, *, pad: int = 1) -> None:
        super().__init__(config, size, pad=pad)
        self.pooler = nn.Linear(config.d_model, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, classes)
        for linear in (self.pooler, self.output):
            nn.init.normal_(linear.weight, std=config.d_model**-0.5)
            nn.init.zeros_(linear.bias)

    def forward(self, ids: Tensor, types: Tensor | None = None) -> Tensor:
        """Score every class: (B, S) -> logits (B, C)."""
        pooled = self.pooler(self.pool(*self.encode(ids, types)))
        activate = torch.tanh if self.config.pooler == "tanh" else functional.relu
        return self.output(self.dropout(activate(pooled)))

    def pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """The first token's vector, or the mean of the real ones: (B, S, D), (B, 1, 1, S) -> (B, D)."""
        if self.config.pooling == "cls":
            return hidden[:, 0]
        return mean_of_real(hidden, mask)


class MaskedLanguageModel(EncoderOnly):
    """An encoder that guesses the tokens that were hidden from it (BERT's first task)."""

    def __init__(self, config: ModelConfig, size: int, *, pad: int = 1) -> None:
        super().__init__(config, size, pad=pad)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.transform_norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.output = nn.Linear(config.d_model, size)
        nn.init.normal_(self.transform.weight, std=config.d_model**-0.5)
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        nn.init.zeros_(self.transform.bias)
        nn.init.zeros_(self.output.bias)
        if config.tied_embeddings != "none":
            self.output.weight = self.embedding.tokens.weight

    def forward(self, ids: Tensor, types: Tensor | None = None) -> Tensor:
        """Score every token at every place: (B, S) -> logits (B, S, V)."""
        return self.output(self.guesses(self.encode(ids, types)[0]))

    def guesses(self, hidden: Tensor) -> Tensor:
        """What the output layer reads, of hidden states at any places: (..., D) -> (..., D)."""
        return self.transform_norm(functional.gelu(self.transform(hidden)))


def mean_of_real(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean of the vectors of real tokens: hidden states (B, S, D), padding mask (B, 1, 1, S) -> (B, D)."""
    real = mask[:, 0, 0, :, None]  # (B, S, 1)
    return hidden.masked_fill(~real, 0).sum(1) / real.sum(1)
