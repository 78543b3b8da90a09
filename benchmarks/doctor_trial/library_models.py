"""Small models of every text architecture of transformers, found in the library's auto-model mappings.

"ForCausalLM llama" names the class that the mapping of causal language models holds for the model type llama. Every
field of its default configuration that is a size is made small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import nn

VOCABULARY, POSITIONS, WINDOW, MOST_LAYERS = 23, 64, 8, 4
SCALES = (1, 2, 4, 8)  # times the smallest widths; the next is tried where a model cannot be built or called
MAPPINGS = {
    "ForConditionalGeneration": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "ForCausalLM": "MODEL_FOR_CAUSAL_LM_MAPPING",
    "ForMaskedLM": "MODEL_FOR_MASKED_LM_MAPPING",
    "TextEncoder": "MODEL_FOR_TEXT_ENCODING_MAPPING",
    "ForSequenceClassification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "ForTokenClassification": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
}
OTHER_INPUTS = (
    "vision",
    "audio",
    "image",
    "speech",
    "pixel",
    "codec",
    "depth_decoder",
    "sound",
    "projector",
    "prosody",
    "qformer",
)
WRITERS = ("gpt2",)  # decoders of further "encoder-decoder" models: their cross-attention is asked nowhere else
MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


class NotBuilt(Exception):
    """Reason why no small model was built."""


def names() -> list[str]:
    """Return the names of all models, those of one mapping after those of another."""
    from transformers.models.auto import modeling_auto

    mappings = vars(modeling_auto)
    found = [f"{kind} {family}" for kind, name in MAPPINGS.items() for family in mappings.get(f"{name}_NAMES", ())]
    return [*found, *(f"ForConditionalGeneration encoder-decoder+{writer}" for writer in WRITERS)]


def classes(name: str) -> tuple[type, type]:
    """Return the classes of the configuration and of the model.

    Raises:
        NotBuilt: the library has neither, or needs a package that is not installed.
    """
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind, family = name.split(" ")
    try:
        config = CONFIG_MAPPING[family.partition("+")[0]]
        model = vars(modeling_auto)[MAPPINGS[kind]][config]
    except (KeyError, ImportError, AttributeError, ValueError) as error:
        raise NotBuilt(f"{type(error).__name__}: {error}") from error
    return config, model[0] if isinstance(model, tuple) else model


def make(name: str, scale: int = 1) -> nn.Module:
    """Return a model with the library's own random weights.

    Raises:
        NotBuilt: the model reads images or sound, or its classes are missing.
    """
    config_class, model_class = classes(name)
    if config_class.__name__ == "EncoderDecoderConfig":
        return model_class(joined_config(config_class, name.partition("+")[2] or "bert", scale))
    return model_class(as_used(small_config(config_class, scale), name.split(" ")[0]))


def joined_config(config_class: type, writer: str, scale: int) -> Any:
    """Return a small configuration of BERT as the encoder and a decoder of the model type `writer`."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    parts = {
        side: {**small_values(CONFIG_MAPPING[family]().to_dict(), scale), "model_type": family}
        for side, family in (("encoder", "bert"), ("decoder", writer))
    }
    parts["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    return config_class(**parts, decoder_start_token_id=1, pad_token_id=0)


def small_config(config_class: type, scale: int) -> Any:
    """Return a configuration with small sizes.

    Raises:
        NotBuilt: the model reads images or sound.
    """
    parts = getattr(config_class, "sub_configs", {})
    others = [part for part in parts if any(word in part for word in OTHER_INPUTS)]
    if others:
        raise NotBuilt(f"reads more than text ({', '.join(others)})")
    default = config_class()
    values = small_values({name: value for name, value in default.to_dict().items() if name not in parts}, scale)
    for part in parts:
        inner = getattr(default, part, None)
        if inner is not None:
            values[part] = small_values(inner.to_dict(), scale)
    return config_class(**values)


def as_used(config: Any, kind: str) -> Any:
    """Return a configuration with the fields that the library's documentation requires for this use."""
    if kind == "ForCausalLM" and hasattr(config, "is_decoder"):
        config.is_decoder = True
    if kind == "ForSequenceClassification" and getattr(config, "pad_token_id", 0) is None:
        config.pad_token_id = MARKS["pad_token_id"]
    if getattr(config, "is_encoder_decoder", False) and not hasattr(config, "decoder_start_token_id"):
        config.decoder_start_token_id = MARKS["pad_token_id"]
    return config


def small_values(fields: Mapping[str, Any], scale: int) -> dict[str, Any]:
    """Return the fields to change, each with its small value."""
    layers = layer_count(fields)
    heads = next((value for name, value in fields.items() if re.search(HEADS, name)), None)
    small: dict[str, Any] = {}
    for name, value in fields.items():
        if name in NOT_SIZES or name.startswith("_") or isinstance(value, bool):
            continue
        if isinstance(value, int):
            small[name] = small_number(name, value, scale, layers, heads)
        elif isinstance(value, (list, tuple)):
            small[name] = small_list(name, value, scale, layers)
    changed = {name: value for name, value in small.items() if value != fields[name]}
    return changed | SPECIAL.get(str(fields.get("model_type")), {})


NOT_SIZES = {"model_type", "transformers_version", "architectures", "dtype", "return_dict", "id2label", "label2id"}
HEADS = r"(^|_)(n_heads?|num_heads|num_attention_heads|attention_heads|heads)$"
# The first pattern that a name matches decides; a value is never made larger but for 0.
RULES: tuple[tuple[str, int, bool], ...] = (  # pattern, small value, whether it grows with the scale
    (r"vocab|n_tokens$|num_embeddings$", VOCABULARY, False),
    (r"prompt_types|prompt_length|position_bias|ngram_(vocab|table)|engram", 8, False),
    (r"experts_per_tok|top_k|topk$|selected_experts|moe_k$", 2, False),
    (r"n_group|topk_group|n_groups|num_groups|mamba_n_groups|ngroups", 1, False),
    (r"shared_expert.*(num|n_)|(num|n_)\w*shared_expert", 1, False),
    (r"(num|n)_\w*experts?$|experts$", 4, False),
    (r"first_k_dense", 1, False),
    (r"max_\w*position|n_positions|max_seq|n_ctx|max_source|max_target|seq_length$|max_len", POSITIONS, False),
    (r"window|attention_context|sliding", WINDOW, False),
    (r"chunk|block_size|num_random_blocks", 8, False),
    (r"intermediate|ffn|d_?ff|dim_ff|n_inner|mlp_(dim|hidden)|ff_dim|feed_forward|inner_dim", 32, True),
    (r"head_dim|d_kv|kv_channels|d_head|head_size|dim_head|rotary_dim|dims_per_head|mamba_headdim", 8, True),
    (r"rank|low_rank", 8, True),
    (r"state_size|d_state|ssm_state", 8, False),
    (r"hidden|d_model|n_embd|embed|emb_|^dim$|_dim$|width|input_size|_size$|d_embed", 16, True),
)


def small_number(name: str, value: int, scale: int, layers: int, heads: int | None) -> int:
    """Return a small value of a field."""
    if name.endswith("token_id"):
        return value if value < VOCABULARY else MARKS.get(name, 3)
    if re.search(r"(kv_heads|key_value_heads|num_kv|n_kv)", name):
        return min(value, 2 if value == heads else 1)
    if "head" in name and re.search(r"heads?$", name):
        return min(value, 2)
    if re.search(r"(^|_)(n|num)_?\w*layers?$|_layers$|^depth$|n_layer$", name):
        return min(value, layers)
    for pattern, small, grows in RULES:
        if re.search(pattern, name):
            return min(value, small * (scale if grows else 1))
    return value


def layer_count(fields: Mapping[str, Any]) -> int:
    """Return a number of layers among which each type of layer is, at most `MOST_LAYERS`; else 2."""
    types = fields.get("layer_types") or fields.get("layers_block_type")
    if not isinstance(types, (list, tuple)):
        return 2
    first = [list(types).index(kind) for kind in dict.fromkeys(types)]
    return max(2, min(1 + max(first), MOST_LAYERS))


def small_list(name: str, value: list[Any] | tuple[Any, ...], scale: int, layers: int) -> Any:
    """Return a list with an entry for each layer that is left, or of small sizes."""
    if name == "block_sizes":
        return [1, 1]
    if name.endswith("token_id"):
        return [token if token < VOCABULARY else 2 for token in value]
    if len(value) > layers and name != "keys_to_ignore_at_inference" and not name.startswith("rope"):
        value = value[:layers]
    if value and all(type(entry) is int for entry in value):
        value = [small_number(name, entry, scale, layers, None) for entry in value]
    return list(value)


# Small values of fields that no rule matches, by model type.
SPECIAL: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]},
    "bamba": {"mamba_n_heads": 4, "mamba_d_head": 8, "attn_layer_indices": [1]},
    "falcon_h1": {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_ssm": 32},
    "granitemoehybrid": {"mamba_n_heads": 4, "mamba_d_head": 8, "layer_types": ["mamba", "attention"]},
    "mamba2": {"num_heads": 4, "head_dim": 8, "hidden_size": 16, "expand": 2},
    "codegen": {"n_head": 4, "n_embd": 32, "rotary_dim": 4},
    "xlnet": {"d_model": 16, "n_head": 2, "d_head": 8},
    "reformer": {
        "attn_layers": ["local", "lsh"],
        "axial_pos_shape": [8, 8],
        "axial_pos_embds_dim": [8, 8],
        "hidden_size": 16,
    },
    "perceiver": {"num_latents": 8, "d_latents": 16, "num_self_attends_per_block": 2},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"], "num_hidden_layers": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8},
    "ministral": {"head_dim": 8},
    "nemotron": {"num_key_value_heads": 2, "head_dim": 8},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "cohere_compass_text": {"layer_types": ["sliding_attention", "full_attention"]},
}
