"""Models of transformers with random weights, of varied families."""

from __future__ import annotations

from typing import Any

import torch
import transformers

SIZES: dict[str, Any] = {
    "vocab_size": 29,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def library(family: str, use: str = "ForCausalLM", **options: Any) -> dict[str, Any]:
    """Return the arguments of a model: a family of the library, its use, and fields of its configuration."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**SIZES, **options})
    model = getattr(transformers, f"{family}{use}")(config)
    kind = {"ForCausalLM": "decoder", "ForMaskedLM": "encoder", "ForSequenceClassification": "encoder"}.get(use)
    return {"model": model, "longest": 96, **({"kind": kind} if kind else {})}
