"""Build the text models of transformers small, with their own random weights.

A model is named by the library's auto-model mapping and its model type: "ForCausalLM llama". Sizes are known by the
names of the fields of its configuration.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer_doctor.errors import headline
from transformer_doctor.report import reason_of

VOCABULARY, MOST_LAYERS = 23, 4
SCALES = (1, 2, 4, 8)  # times the smallest widths; the next is tried where a model cannot be built or called
MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MAPPINGS: dict[str, str] = TABLES["mappings"]


class NotBuilt(Exception):
    """Reason why no small model was built."""


def library_names() -> dict[str, str]:
    """Return the classes of transformers by the names of the models, mapping by mapping."""
    from transformers.models.auto import modeling_auto

    mappings = {kind: vars(modeling_auto).get(f"{name}_NAMES", {}) for kind, name in MAPPINGS.items()}
    found = {f"{kind} {family}": model for kind, names in mappings.items() for family, model in names.items()}
    joined = (f"ForConditionalGeneration encoder-decoder+{writer}" for writer in TABLES["writers"])
    found |= dict.fromkeys(joined, "EncoderDecoderModel")
    return {name: model if isinstance(model, str) else model[0] for name, model in found.items()}


def small_model(name: str) -> nn.Module:
    """Return the smallest model of a name that can be built and called.

    Raises:
        NotBuilt: no size can, the model reads images or sound, or its classes are missing.
    """
    reason = None
    for scale in SCALES:
        try:
            torch.manual_seed(0)
            model = make(name, scale)
            call_model(model)
        except NotBuilt:
            raise
        except Exception as error:  # any exception of the library's model
            reason = reason or NotBuilt(reason_of(error))
        else:
            return model
    assert reason is not None
    raise reason


@torch.no_grad()
def call_model(model: Any) -> Any:
    """Call a model once, and return its output."""
    ids = torch.randint(3, VOCABULARY, (2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder and type(model).__name__.endswith("Classification"):
        inputs["input_ids"][:, -1] = model.config.eos_token_id
    elif model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids[:, :5]
    return model.eval()(**inputs)


def kind_of(name: str) -> Any:
    """Return "encoder" for a name that says so, else None: the model tells its kind itself."""
    return "encoder" if re.search("Encoder|Masked|Classifi", name) else None


def make(name: str, scale: int = 1) -> nn.Module:
    """Return a model with its own random weights.

    Raises:
        NotBuilt: the model reads images or sound, or the library has not its classes or a package that they need.
    """
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind, _, family = name.partition(" ")
    family, _, writer = family.partition("+")
    try:
        config_class = CONFIG_MAPPING[family]
        model_class = vars(modeling_auto)[MAPPINGS[kind]][config_class]
    except (KeyError, ImportError, AttributeError, ValueError) as error:
        raise NotBuilt(headline(error)) from error
    if isinstance(model_class, tuple):
        model_class = model_class[0]
    if family == "encoder-decoder":
        sides = {"encoder": CONFIG_MAPPING["bert"](), "decoder": CONFIG_MAPPING[writer or "bert"]()}
        return model_class(_joined_config(config_class, sides, scale))
    return model_class(_small_config(config_class, kind, scale))


def _joined_config(config_class: type, sides: Mapping[str, Any], scale: int) -> Any:
    """Return a small configuration of an encoder and a decoder, from their configurations."""
    parts = {
        side: _small_values(config.to_dict(), scale) | {"model_type": config.model_type}
        for side, config in sides.items()
    }
    parts["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    return config_class(**parts, decoder_start_token_id=1, pad_token_id=0)


def _small_config(config_class: Any, kind: str, scale: int) -> Any:
    """Return a configuration with small sizes, and the fields that the library's documentation requires for a kind.

    Raises:
        NotBuilt: the model reads images or sound.
    """
    others = [part for part in config_class.sub_configs if any(word in part for word in TABLES["other inputs"])]
    if others:
        raise NotBuilt(f"reads more than text ({', '.join(others)})")
    default = config_class()
    values = _small_values(default.to_dict(), scale)
    for part in config_class.sub_configs:
        inner = getattr(default, part, None)
        values |= {} if inner is None else {part: _small_values(inner.to_dict(), scale)}
    config = config_class(**values)
    if kind == "ForCausalLM" and hasattr(config, "is_decoder"):
        config.is_decoder = True
    if kind == "ForSequenceClassification" and getattr(config, "pad_token_id", 0) is None:
        config.pad_token_id = MARKS["pad_token_id"]
    if getattr(config, "is_encoder_decoder", False) and not hasattr(config, "decoder_start_token_id"):
        config.decoder_start_token_id = MARKS["pad_token_id"]
    return config


def _small_values(fields: Mapping[str, Any], scale: int) -> dict[str, Any]:
    """Return the fields to change, each with its small value.

    A list loses its entries for layers that are left out. There are as many layers as it takes to have one of each
    type, at least two.
    """
    types = [*(fields.get("layer_types") or fields.get("layers_block_type") or ())]
    layers = min(MOST_LAYERS, max([2, *(types.index(kind) + 1 for kind in types)]))
    heads = next((value for name, value in fields.items() if re.search(TABLES["heads"], name)), None)

    def small(name: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [small(name, entry) for entry in value[: None if name.startswith("rope") else layers]]
        if type(value) is not int:
            return value
        if name.endswith("token_id"):
            return value if value < VOCABULARY else MARKS.get(name, 3)
        if re.search(TABLES["heads of keys"], name):
            return min(value, 2 if value == heads else 1)
        rule = next((rule for rule in TABLES["rules"] if re.search(rule["name"], name)), {"small": value})
        return min(value, rule.get("small", layers) * (scale if rule.get("grows") else 1))

    sizes = {name: value for name, value in fields.items() if name not in TABLES["not sizes"] and name[0] != "_"}
    changed = {name: new for name, value in sizes.items() if (new := small(name, value)) != value}
    return changed | TABLES["special"].get(str(fields.get("model_type")), {})
