"""Decoder-only language models, which predict the next token (GPT-2: Radford et al. 2019).

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
from manyheads.model.transformer import Transformer

_FORBIDDEN_LOGIT = -1e4  # below any other logit, and still finite in half precision


class _OutputLayer(nn.Linear):
    """The output projection, without a trained bias: (..., D) -> logits (..., V).

    Where the vocabulary of a pre-trained model lacks special tokens, a fixed bias forbids their ids.
    """

    def __init__(self, width: int, size: int, absent: Sequence[int]) -> None:
        super().__init__(width, size, bias=False)
        if absent:
            del self.bias
            forbidden = torch.zeros(size).index_fill_(0, torch.tensor(absent), _FORBIDDEN_LOGIT)
            self.register_buffer("bias", forbidden, persistent=False)


class DecoderOnly(Transformer):
    """A language model: the text so far in, the logits of the next tokens out.

    A decoder layer without cross-attention is an encoder layer with a causal mask.
    """

    decoder_layers: Sequence[EncoderLayer]

    def __init__(self, config: ModelConfig, size: int, *, pad: int = 1, absent: Sequence[int] = ()) -> None:
        """Build a model with random weights.

        Args:
            config: the section `[model]` of the configuration.
            size: vocabulary size V.
            pad: id of the padding token.
            absent: ids without a token, which are never predicted.
        """
        super().__init__(config, pad)
        self.embedding = TokenEmbedding(config, size, pad)
        layers = [EncoderLayer(config) for _ in range(config.num_decoder_layers)]
        self.decoder_layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.decoder_norm = final_norm(config)
        self.output = _OutputLayer(config.d_model, size, absent)
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.tied_embeddings != "none":
            self.output.weight = self.embedding.tokens.weight

    def layers(self) -> Iterator[EncoderLayer]:
        """Yield the layers, the lowest first."""
        yield from self.decoder_layers

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the logits of the next token at each position, by teacher forcing: (B, T) -> (B, T, V)."""
        return self.output(self.decode(ids))

    def decode(self, ids: Tensor) -> Tensor:
        """Compute the hidden states of texts that are padded at their end: (B, T) -> (B, T, D)."""
        length = ids.size(1)
        positions = torch.arange(length, device=ids.device)[None]
        x = self.embedding(ids, positions, length)
        mask = causal_mask(length, ids.device)
        cos_sin = self.rotary_cos_sin(positions)
        for layer in self.decoder_layers:
            x = layer(x, mask, cos_sin)
        return self.decoder_norm(x)
