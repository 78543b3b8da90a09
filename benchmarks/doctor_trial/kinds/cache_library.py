"""Models of transformers with random weights and unusual caches, and a model with a cache class of its own."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

SMALL = {
    "vocab_size": 43,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}


def made(family: str, values: dict[str, Any], task: str = "ForCausalLM") -> nn.Module:
    """Return a model of the library with larger weights than a new one has."""
    config = getattr(transformers, f"{family}Config")(**values)
    model = getattr(transformers, f"{family}{task}")(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.mul_(4)
    return model.eval()


def mistral() -> nn.Module:
    return made("Mistral", {**GROUPED, "sliding_window": 8})


def gemma() -> nn.Module:
    kinds = ["sliding_attention", "full_attention"]
    return made("Gemma2", {**GROUPED, "sliding_window": 6, "layer_types": kinds, "query_pre_attn_scalar": 8})


def bloom() -> nn.Module:
    return made("Bloom", {"vocab_size": 43, "hidden_size": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0})


def t5() -> nn.Module:
    sizes = {"vocab_size": 43, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    return made("T5", {**sizes, "decoder_start_token_id": 0}, "ForConditionalGeneration")


def mamba() -> nn.Module:
    sizes = {"hidden_size": 16, "num_heads": 4, "head_dim": 8, "state_size": 8, "n_groups": 1, "chunk_size": 8}
    return made("Mamba2", {**sizes, "vocab_size": 43, "num_hidden_layers": 2, "pad_token_id": 0})


def lfm() -> nn.Module:
    kinds = ["conv", "full_attention"]
    return made("Lfm2", {**GROUPED, "layer_types": kinds, "conv_L_cache": 3, "block_auto_adjust_ff_dim": False})


def latent() -> nn.Module:
    parts = {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
    experts = {"first_k_dense_replace": 2, "n_routed_experts": 4, "num_experts_per_tok": 2}
    return made(
        "DeepseekV3", {**SMALL, **parts, **experts, "num_key_value_heads": 4, "n_group": 1, "topk_group": 1}
    )


class KeptCache(DynamicCache):
    """The cache that `Writer` makes for itself."""

    def reorder_cache(self, beam_idx: Tensor) -> None:
        for layer in self.layers:
            layer.keys = layer.keys.index_select(0, beam_idx)
            layer.values = layer.values.index_select(0, beam_idx)

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *rest: Any, **more: Any) -> Any:
        keys, values = super().update(key_states, value_states, layer_idx, *rest, **more)
        return keys, values

    def crop(self, tokens_to_remove: int) -> None:
        for layer in self.layers:
            left = layer.keys.size(2) - abs(tokens_to_remove)
            layer.keys, layer.values = layer.keys[:, :, :left], layer.values[:, :, :left]


class Writer(LlamaForCausalLM):
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        **others: Any,
    ) -> Any:
        if use_cache and past_key_values is None:
            past_key_values = KeptCache()
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
            **others,
        )


def writer() -> nn.Module:
    return Writer(LlamaConfig(**GROUPED, initializer_range=0.2)).eval()
