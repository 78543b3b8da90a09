"""Train Hugging Face MarianMT in a plain loop, on the batches of manyheads. Needs: pip install transformers."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from manyheads.config.schema import ModelConfig
from manyheads.tensors.pairs import Batch
from manyheads.text.tokenizer import BOS, EOS, PAD
from peers.corpus import open_prepared
from peers.plain_loop import train


def marian(config: ModelConfig, size: int) -> MarianMTModel:
    """Return a MarianMT of the same sizes; MarianMT is always post-norm, as in the paper."""
    return MarianMTModel(
        MarianConfig(
            vocab_size=size,
            d_model=config.d_model,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            activation_function="relu",
            dropout=config.dropout,
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=EOS,
            decoder_start_token_id=BOS,
            max_position_embeddings=256,
        )
    )


def main(folder: Path, precision: str) -> None:
    prepared = open_prepared(folder)
    torch.manual_seed(prepared.config.training.seed)
    model = marian(prepared.config.model, prepared.size)

    def logits(batch: Batch) -> Tensor:
        mask = batch.source != PAD
        inputs = {"input_ids": batch.source, "attention_mask": mask, "decoder_input_ids": batch.target_in}
        return model(**inputs, use_cache=False).logits

    train(model, logits, prepared, precision)
