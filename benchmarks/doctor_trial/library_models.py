"""Small models of every text architecture of transformers, found in the library's auto-model mappings.

"ForCausalLM llama" names the class that the mapping of causal language models holds for the model type llama. Every
field of its default configuration that is a size is made small.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

VOCABULARY, MOST_LAYERS = 23, 4
SCALES = (1, 2, 4, 8)  # times the smallest widths; the next is tried where a model cannot be built or called
MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MAPPINGS: dict[str, str] = TABLES["mappings"]


class NotBuilt(Exception):
    """Reason why no small model was built."""


def names() -> list[str]:
    """Return the names of all models, those of one mapping after those of another."""
    from transformers.models.auto import modeling_auto

    mappings = vars(modeling_auto)
    found = [f"{kind} {family}" for kind, name in MAPPINGS.items() for family in mappings.get(f"{name}_NAMES", ())]
    return [*found, *(f"ForConditionalGeneration encoder-decoder+{writer}" for writer in TABLES["writers"])]


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
    others = [part for part in parts if any(word in part for word in TABLES["other inputs"])]
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
    heads = next((value for name, value in fields.items() if re.search(TABLES["heads"], name)), None)
    small: dict[str, Any] = {}
    for name, value in fields.items():
        if name in TABLES["not sizes"] or name.startswith("_") or isinstance(value, bool):
            continue
        if isinstance(value, int):
            small[name] = small_number(name, value, scale, layers, heads)
        elif isinstance(value, (list, tuple)):
            small[name] = small_list(name, value, scale, layers)
    changed = {name: value for name, value in small.items() if value != fields[name]}
    return changed | TABLES["special"].get(str(fields.get("model_type")), {})


def small_number(name: str, value: int, scale: int, layers: int, heads: int | None) -> int:
    if name.endswith("token_id"):
        return value if value < VOCABULARY else MARKS.get(name, 3)
    if re.search(r"(kv_heads|key_value_heads|num_kv|n_kv)", name):
        return min(value, 2 if value == heads else 1)
    if "head" in name and re.search(r"heads?$", name):
        return min(value, 2)
    if re.search(r"(^|_)(n|num)_?\w*layers?$|_layers$|^depth$|n_layer$", name):
        return min(value, layers)
    for rule in TABLES["rules"]:
        if re.search(rule["name"], name):
            return min(value, rule["small"] * (scale if rule.get("grows") else 1))
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
