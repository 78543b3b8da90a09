"""Train torch.nn.Transformer with embeddings, as in the translation tutorial of PyTorch."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.positions import sinusoids
from manyheads.tensors.pairs import Batch
from manyheads.text.tokenizer import PAD
from peers.corpus import open_prepared
from peers.plain_loop import train

MAX_POSITIONS = 256  # no sentence of the corpus is longer


class TorchTransformer(nn.Module):
    """The model of manyheads built from torch.nn.Transformer: pre-norm, tied embeddings, the same dropout."""

    positions: Tensor

    def __init__(self, config: ModelConfig, size: int) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.scale = config.d_model**0.5
        self.embedding = nn.Embedding(size, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        self.register_buffer("positions", sinusoids(MAX_POSITIONS, config.d_model))
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_encoder_layers,
            config.num_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=True,
        )
        for module in self.transformer.modules():  # nn.Transformer applies its one rate there too
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = config.attention_dropout
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout = nn.Identity()
        self.output = nn.Linear(config.d_model, size)
        self.output.weight = self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        """Embed tokens and add positions: (B, S) -> (B, S, D)."""
        x = self.embedding(ids) * self.scale + self.positions[: ids.size(1)]
        return functional.dropout(x, self.dropout, self.training)

    def logits(self, batch: Batch) -> Tensor:
        """Return the logits of the target tokens: (B, T, V)."""
        padded = batch.source == PAD
        hidden = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target_in.size(1), dtype=torch.bool),
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
            tgt_is_causal=True,
        )
        return self.output(hidden)


def main(folder: Path, precision: str) -> None:
    prepared = open_prepared(folder)
    torch.manual_seed(prepared.config.training.seed)
    model = TorchTransformer(prepared.config.model, prepared.size)
    train(model, model.logits, prepared, precision)
