"""Encoder-only models, in which every token attends to all others (BERT: Devlin et al. 2019, section 3).

Shapes: B batch, S length, D model width, C classes, V vocabulary.
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
from manyheads.model.transformer import Transformer


class EncoderOnly(Transformer):
    """An encoder: a text in, a hidden state for each of its tokens out."""

    encoder_layers: Sequence[EncoderLayer]

    def __init__(self, config: ModelConfig, size: int, *, pad: int = 1) -> None:
        super().__init__(config, pad)
        self.embedding = TokenEmbedding(config, size, pad)
        layers = [EncoderLayer(config) for _ in range(config.num_encoder_layers)]
        self.encoder_layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.encoder_norm = final_norm(config)

    def layers(self) -> Iterator[EncoderLayer]:
        """Yield the layers, the lowest first."""
        yield from self.encoder_layers

    def encode(self, ids: Tensor, types: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Compute the hidden states of texts.

        Args:
            ids: token ids (B, S).
            types: number of the text to which each token belongs (B, S), 0 by default; for models with token types.

        Returns:
            Hidden states (B, S, D), and the padding mask (B, 1, 1, S).
        """
        mask = padding_mask(ids, self.pad)
        positions = position_ids(mask)
        x = self.embedding(ids, positions, ids.size(1), types)
        cos_sin = self.rotary_cos_sin(positions)
        for layer in self.encoder_layers:
            x = layer(x, mask, cos_sin)
        return self.encoder_norm(x), mask


class TextClassifier(EncoderOnly):
    """An encoder with a classification head: pooled states -> linear -> tanh or relu -> dropout -> linear."""

    def __init__(self, config: ModelConfig, size: int, classes: int, *, pad: int = 1) -> None:
        super().__init__(config, size, pad=pad)
        self.pooler = nn.Linear(config.d_model, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, classes)
        for linear in (self.pooler, self.output):
            nn.init.normal_(linear.weight, std=config.d_model**-0.5)
            nn.init.zeros_(linear.bias)

    def forward(self, ids: Tensor, types: Tensor | None = None) -> Tensor:
        """Compute the logits of the classes: (B, S) -> (B, C)."""
        pooled = self.pooler(self.pool(*self.encode(ids, types)))
        activate = torch.tanh if self.config.pooler == "tanh" else functional.relu
        return self.output(self.dropout(activate(pooled)))

    def pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the first token's state, or the mean of all real tokens: (B, S, D), (B, 1, 1, S) -> (B, D)."""
        match self.config.pooling:
            case "cls":
                return hidden[:, 0]
            case "mean":
                return mean_of_real(hidden, mask)


class MaskedLanguageModel(EncoderOnly):
    """An encoder that predicts masked tokens (BERT's first task: Devlin et al. 2019, section 3.1)."""

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
        """Compute the logits of all tokens at every position: (B, S) -> (B, S, V)."""
        return self.output(self.transform_states(self.encode(ids, types)[0]))

    def transform_states(self, hidden: Tensor) -> Tensor:
        """Transform hidden states for the output layer: (..., D) -> (..., D)."""
        return self.transform_norm(functional.gelu(self.transform(hidden)))


def mean_of_real(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average the hidden states of real tokens: states (B, S, D), padding mask (B, 1, 1, S) -> (B, D)."""
    real = mask[:, 0, 0, :, None]  # (B, S, 1)
    return hidden.masked_fill(~real, 0).sum(1) / real.sum(1)
