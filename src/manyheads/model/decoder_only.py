"""Decoder-only models: every token sees those before it, and the next one is guessed (GPT-2: Radford et al. 2019).

Shapes: B batch, T length, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import EncoderLayer, final_norm
from manyheads.model.masks import causal_mask
from manyheads.model.positions import RotaryPositions
from manyheads.model.transformer import Transformer

__all__ = ["DecoderOnly"]

NEVER = -1e4  # below any other logit, and still a number in half precision


class OutputLayer(nn.Linear):
    """Scores of all tokens, without a trained bias: (..., D) -> (..., V).

    Where the vocabulary of a pre-trained model lacks special symbols, their ids get a bias that forbids them.
    """

    def __init__(self, width: int, size: int, absent: Sequence[int]) -> None:
        super().__init__(width, size, bias=False)
        if absent:
            del self.bias
            forbidden = torch.zeros(size).index_fill_(0, torch.tensor(absent), NEVER)
            self.register_buffer("bias", forbidden, persistent=False)


class DecoderOnly(Transformer):
    """A language model: the text so far in, scores of each next token out.

    A decoder's layer that has no source to look at is an encoder's layer under a causal mask.
    """

    decoder_layers: Sequence[EncoderLayer]

    def __init__(self, config: ModelConfig, size: int, *, pad: int = 1, absent: Sequence[int] = ()) -> None:
        """A new model.

        Args:
            config: its shape.
            size: V.
            pad: id of padding.
            absent: ids that are no tokens, and never come next.
        """
        super().__init__(config, pad)
        self.embedding = TokenEmbedding(config, size, pad)
        layers = [EncoderLayer(config) for _ in range(config.num_decoder_layers)]
        self.decoder_layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.decoder_norm = final_norm(config)
        self.output = OutputLayer(config.d_model, size, absent)
        rotary = config.positions == "rotary"
        self.rotary = RotaryPositions(config.d_model // config.num_heads) if rotary else None
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.tied_embeddings != "none":
            self.output.weight = self.embedding.tokens.weight

    def layers(self) -> Iterator[EncoderLayer]:
        """Lowest first."""
        yield from self.decoder_layers

    def forward(self, ids: Tensor) -> Tensor:
        """Teacher forcing: (B, T) -> logits (B, T, V) of the token after each."""
        return self.output(self.decode(ids))

    def decode(self, ids: Tensor) -> Tensor:
        """Read texts that are padded at their end: (B, T) -> hidden states (B, T, D)."""
        length = ids.size(1)
        positions = torch.arange(length, device=ids.device)[None]
        x = self.embedding(ids, positions, length)
        mask = causal_mask(length, ids.device)
        turns = None if self.rotary is None else self.rotary(positions)
        for layer in self.decoder_layers:
            x = layer(x, mask, turns)
        return self.decoder_norm(x)
