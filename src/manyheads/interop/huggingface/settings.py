"""Conversion between config.json of transformers and the settings `[model]`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.config.schema import ModelConfig
from manyheads.config.schema.tasks import Architecture
from manyheads.errors import RunError
from manyheads.text.huggingface import Family

FAMILIES: dict[Family, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "families.toml").read_text(encoding="utf-8")
)  # type: ignore[assignment]
FAMILIES["roberta"] |= {name: FAMILIES["bert"][name] for name in ("settings", "defaults", "layers")}
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
AUTO_CLASSES: dict[Architecture, str] = {
    "classifier": "AutoModelForSequenceClassification",
    "masked-encoder": "AutoModelForMaskedLM",
    "decoder": "AutoModelForCausalLM",
}
_HF_ACTIVATIONS = {"gelu": "gelu", "gelu-tanh": "gelu_new", "relu": "relu", "swish": "silu"}
# Settings of all these models.
_COMMON = {"positions": "learned", "scale_embeddings": False, "bias": True}
# Settings of other variants, and the only value of each that manyheads supports.
_ONLY: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "sinusoidal_pos_embds": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "embedding_size": None,
}


def family_of(settings: Mapping[str, Any], folder: Path) -> Family:
    """Return the type of model of a folder.

    Raises:
        RunError: the type is not supported.
    """
    for family in FAMILIES:
        if settings.get("model_type") == family:
            return family
    raise RunError(
        f"{folder} is a model of the type {settings.get('model_type')!r}, which is not supported. Supported are "
        f"{', '.join(FAMILIES)} (MiniLM and the like are of one of these), and marian for translation."
    )


def our_shape(settings: Mapping[str, Any], family: Family, folder: Path) -> dict[str, Any]:
    """Convert settings of transformers to settings of `[model]`.

    Raises:
        RunError: settings are missing or invalid, or of a variant that manyheads does not have; the message names
            them.
    """
    names, defaults = FAMILIES[family]["settings"], FAMILIES[family]["defaults"]
    shape: dict[str, Any] = {
        setting: settings[name] if settings.get(name) is not None else defaults.get(setting)
        for setting, name in names.items()
    }
    if family == "gpt2" and shape["d_ff"] is None and type(shape["d_model"]) is int:
        shape["d_ff"] = 4 * shape["d_model"]
    problems = [
        f"{names[setting]} is {value!r}" for setting, value in shape.items() if not _is_valid(setting, value)
    ]
    problems += [
        f"{name} is {settings[name]!r}"
        for name, supported in _ONLY.items()
        if name in settings and settings[name] != supported
    ]
    if problems:
        raise RunError(f"{folder} cannot be a model of ours: {'; '.join(problems)}.")
    shape["activation"] = _ACTIVATIONS[shape["activation"]]
    tied = settings.get("tie_word_embeddings", True) is not False
    if family == "gpt2":
        tying = "all" if tied else "none"
        return {**shape, **_COMMON, "norm": "pre", "embedding_norm": False, "tied_embeddings": tying}
    shape.setdefault("norm_epsilon", 1e-12)
    shape.setdefault("token_types", 0)
    if family == "roberta":
        shape["max_positions"] -= position_offset(settings, family)
        if shape["max_positions"] < 1:
            raise RunError(f"{folder} cannot be a model of ours: max_position_embeddings leaves no position.")
    # The head of a masked language model is read as tied; the head of a folder with another setting is not read.
    return {**shape, **_COMMON, "norm": "post", "embedding_norm": True, "tied_embeddings": "all"}


def _is_valid(name: str, value: Any) -> bool:
    if type(ModelConfig.model_fields[name].default) is int:
        return type(value) is int and (value > 0 or name == "token_types")
    if name == "activation":
        return isinstance(value, str) and value in _ACTIVATIONS
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def position_offset(settings: Mapping[str, Any], family: Family) -> int:
    """Return the number of unused rows at the beginning of the table of positions."""
    padding = settings.get("pad_token_id", 1)
    return padding + 1 if family == "roberta" and type(padding) is int else 0


def model_settings(config: ModelConfig, family: Family, rows: int, padding: int | None) -> dict[str, Any]:
    """Return config.json of transformers for a manyheads model, without its labels.

    Args:
        config: settings of the manyheads model.
        family: type of the model in transformers.
        rows: number of token ids in transformers.
        padding: id of padding in transformers.
    """
    values = config.model_dump()
    shape = {name: values[setting] for setting, name in FAMILIES[family]["settings"].items()}
    shape[FAMILIES[family]["settings"]["activation"]] = _HF_ACTIVATIONS[config.activation]
    if family == "gpt2" and config.embedding_dropout is None:
        shape["embd_pdrop"] = config.dropout
    settings = {"model_type": family, "vocab_size": rows, **shape, "dtype": "float32"}
    if family == "gpt2":
        return {**settings, "tie_word_embeddings": config.tied_embeddings != "none"}
    settings["pad_token_id"] = padding
    if family == "distilbert":
        settings["sinusoidal_pos_embds"] = False
    else:
        settings["type_vocab_size"] = max(1, config.token_types)
    settings["max_position_embeddings"] += position_offset(settings, family)
    return settings
