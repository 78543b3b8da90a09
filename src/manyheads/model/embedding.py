"""The embedding of token ids (Vaswani et al. 2017, sections 3.4 and 3.5).

Shapes: B batch, S length, D model width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.dropout import Dropout, SharedDropout
from manyheads.model.positions import LearnedPositions, SinusoidalPositions


class TokenEmbedding(nn.Module):
    """Token embeddings times sqrt(D), plus position embeddings, then dropout (sections 3.4, 3.5 and 5.4).

    With token types (BERT), an embedding of each token's type is added. With `model.embedding_norm`, the sum passes
    through layer normalisation.

    Token embeddings are drawn from a normal distribution of standard deviation 1 / sqrt(D): after the scaling they
    are about as large as the position embeddings. The row of padding starts at zero and gets no gradient from the
    input; it gets one from an output layer whose matrix is tied to the embedding.
    """

    def __init__(self, config: ModelConfig, size: int, pad: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.tokens = nn.Embedding(size, config.d_model, padding_idx=pad)
        deviation = 1.0 if config.scale_embeddings or config.positions == "sinusoidal" else config.d_model**-0.5
        nn.init.normal_(self.tokens.weight, std=deviation / self.scale)
        nn.init.zeros_(self.tokens.weight[pad])
        self.positions: nn.Module | None = None
        match config.positions:
            case "sinusoidal":
                self.positions = SinusoidalPositions(config.d_model)
            case "learned":
                self.positions = LearnedPositions(config.max_positions, config.d_model, deviation)
            case "rotary":  # in the attention
                pass
        self.types = nn.Embedding(config.token_types, config.d_model) if config.token_types else None
        if self.types is not None:
            nn.init.normal_(self.types.weight, std=deviation)
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if config.embedding_norm else nn.Identity()
        self.word_dropout = SharedDropout(config.word_dropout, axes=(2,))
        self.dropout = Dropout(config.dropout if config.embedding_dropout is None else config.embedding_dropout)

    def forward(self, ids: Tensor, positions: Tensor, length: int, types: Tensor | None = None) -> Tensor:
        """Embed tokens: -> (B, S, D).

        Args:
            ids: token ids (B, S).
            positions: their positions (B or 1, S).
            length: a number above every position.
            types: their token types (B, S), 0 by default; used by models with token types only.
        """
        x = self.word_dropout(self.tokens(ids)) * self.scale
        if self.positions is not None:
            x = x + self.positions(positions, length)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids) if types is None else types)
        return self.dropout(self.norm(x))
