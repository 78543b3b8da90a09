"""Token ids as vectors (Vaswani et al. 2017, sections 3.4 and 3.5).

Shapes: B batch, S length, D model width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.dropout import Dropout, SharedDropout
from manyheads.model.positions import LearnedPositions, SinusoidalPositions

__all__ = ["TokenEmbedding"]


class TokenEmbedding(nn.Module):
    """Tokens times sqrt(D), plus positions, then dropout (sections 3.4, 3.5 and 5.4).

    BERT adds the type of each token, and norms the sum.

    Rows are drawn from a normal distribution of deviation 1 / sqrt(D), so that after the scaling a token's
    signal is about as strong as its position's. The row of padding is zero at the start, and reading it never
    trains it; an output layer tied to it does.
    """

    def __init__(self, config: ModelConfig, size: int, pad: int) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.tokens = nn.Embedding(size, config.d_model, padding_idx=pad)
        strength = 1.0 if config.scale_embeddings or config.positions == "sinusoidal" else config.d_model**-0.5
        nn.init.normal_(self.tokens.weight, std=strength / self.scale)
        nn.init.zeros_(self.tokens.weight[pad])
        self.positions: nn.Module | None = None
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions(config.d_model)
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.max_positions, config.d_model, strength)
        self.types = nn.Embedding(config.token_types, config.d_model) if config.token_types else None
        if self.types is not None:
            nn.init.normal_(self.types.weight, std=strength)
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if config.embedding_norm else nn.Identity()
        self.word_dropout = SharedDropout(config.word_dropout, axes=(2,))
        self.dropout = Dropout(config.dropout if config.embedding_dropout is None else config.embedding_dropout)

    def forward(self, ids: Tensor, positions: Tensor, length: int, types: Tensor | None = None) -> Tensor:
        """Token ids (B, S) at positions (B or 1, S), all below `length`, of types (B, S) -> (B, S, D)."""
        x = self.word_dropout(self.tokens(ids)) * self.scale
        if self.positions is not None:
            x = x + self.positions(positions, length)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids) if types is None else types)
        return self.dropout(self.norm(x))
