"""Tiny models of Hugging Face with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

PAD, BOS, EOS = 0, 1, 2
SHARED: dict[str, Any] = {
    "vocab_size": 23,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 29,
    "decoder_ffn_dim": 29,
    "max_position_embeddings": 64,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "forced_eos_token_id": None,
}
BERT: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 29,
    "max_position_embeddings": 64,
    "pad_token_id": PAD,
}
NAMES = (
    "marian", "marian-scaled", "bart", "t5", "bert", "bert-masked-lm", "bert-classifier", "bert2bert", "roberta",
    "gpt2", "gpt2-eager", "t5-eager",
)  # fmt: skip


def make(name: str) -> Any:
    """Return a model by name, with the library's default configuration in a small size."""
    transformers = pytest.importorskip("transformers")
    if name.startswith("marian"):
        config = transformers.MarianConfig(
            **SHARED, decoder_start_token_id=PAD, scale_embedding=name.endswith("scaled")
        )
        return transformers.MarianMTModel(config)
    if name.startswith("bart"):
        kind = "SequenceClassification" if name.endswith("classifier") else "ConditionalGeneration"
        return getattr(transformers, f"BartFor{kind}")(
            transformers.BartConfig(**SHARED, decoder_start_token_id=EOS)
        )
    attention = {"attn_implementation": "eager"} if name.endswith("eager") else {}
    if name.startswith(("t5", "mt5")):
        sizes = {
            "vocab_size": 23, "d_model": 16, "d_kv": 8, "d_ff": 29, "num_layers": 1, "num_heads": 2,
            "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1,
        }  # fmt: skip
        if name == "mt5-classifier":
            return transformers.MT5ForSequenceClassification(transformers.MT5Config(**sizes))
        return transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, **attention))
    if name == "modernbert":
        marks = {"bos_token_id": BOS, "eos_token_id": EOS, "cls_token_id": 3, "sep_token_id": 3}
        return transformers.ModernBertForMaskedLM(transformers.ModernBertConfig(**BERT, **marks))
    if name == "roberta":  # its positions begin after the padding id
        return transformers.RobertaForMaskedLM(
            transformers.RobertaConfig(**BERT | {"pad_token_id": 1, "bos_token_id": 0})
        )
    if name == "bert2bert":  # its configuration holds those of encoder and decoder
        reader, writer = (
            transformers.BertConfig(**BERT),
            transformers.BertConfig(**BERT, is_decoder=True, add_cross_attention=True),
        )
        both = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(reader, writer)
        return transformers.EncoderDecoderModel(config=both)
    if name.startswith("bert"):
        kinds = {
            "bert": transformers.BertModel,
            "bert-masked-lm": transformers.BertForMaskedLM,
            "bert-classifier": transformers.BertForSequenceClassification,
        }
        return kinds[name](transformers.BertConfig(**BERT))
    config = transformers.GPT2Config(
        vocab_size=23,
        n_embd=16,
        n_layer=1,
        n_head=2,
        n_positions=64,
        bos_token_id=BOS,
        eos_token_id=EOS,
        **attention,
    )
    return transformers.GPT2LMHeadModel(config)


def updating(model: Any) -> Callable[..., Tensor]:
    """Return a function of a batch, its entries by name, that makes one update and returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)

    def update(**batch: Tensor) -> Tensor:
        model.train()
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return update
