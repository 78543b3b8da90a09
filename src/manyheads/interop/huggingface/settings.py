"""Their config.json as settings of `[model]`, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from manyheads.config.schema import ModelConfig
from manyheads.errors import RunError
from manyheads.text.huggingface import Family

__all__ = ["family_of", "model_settings", "our_shape"]

FAMILIES: tuple[Family, ...] = get_args(Family)
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
THEIRS = {"gelu": "gelu", "gelu-tanh": "gelu_new", "relu": "relu", "swish": "silu"}

BERT = {
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "num_heads": "num_attention_heads",
    "num_encoder_layers": "num_hidden_layers",
    "max_positions": "max_position_embeddings",
    "token_types": "type_vocab_size",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "activation": "hidden_act",
}
# our setting: theirs
NAMES: dict[Family, dict[str, str]] = {
    "bert": BERT,
    "roberta": BERT,
    "distilbert": {
        "d_model": "dim",
        "d_ff": "hidden_dim",
        "num_heads": "n_heads",
        "num_encoder_layers": "n_layers",
        "max_positions": "max_position_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation": "activation",
    },
    "gpt2": {
        "d_model": "n_embd",
        "d_ff": "n_inner",
        "num_heads": "n_head",
        "num_decoder_layers": "n_layer",
        "max_positions": "n_positions",
        "norm_epsilon": "layer_norm_epsilon",
        "dropout": "resid_pdrop",
        "embedding_dropout": "embd_pdrop",
        "attention_dropout": "attn_pdrop",
        "activation": "activation_function",
    },
}
# What their library takes where config.json is silent, and differs from ours.
ENCODER_DEFAULTS = {"dropout": 0.1, "attention_dropout": 0.1, "activation": "gelu", "norm_epsilon": 1e-12}
DEFAULTS: dict[Family, dict[str, Any]] = {
    "bert": {**ENCODER_DEFAULTS, "token_types": 2, "max_positions": 512},
    "roberta": {**ENCODER_DEFAULTS, "token_types": 2, "max_positions": 512},
    "distilbert": {**ENCODER_DEFAULTS, "max_positions": 512},
    "gpt2": {
        "dropout": 0.1,
        "embedding_dropout": 0.1,
        "attention_dropout": 0.1,
        "activation": "gelu_new",
        "norm_epsilon": 1e-5,
        "max_positions": 1024,
    },
}
WHOLE = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers", "max_positions", "token_types")
# Settings of other variants, and the only value of each that ours can be.
ONLY: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "sinusoidal_pos_embds": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "embedding_size": None,
}


def family_of(theirs: Mapping[str, Any], folder: Path) -> Family:
    """Which of the kinds we know a folder says it is.

    Raises:
        RunError: none of them.
    """
    for family in FAMILIES:
        if theirs.get("model_type") == family:
            return family
    raise RunError(
        f"{folder} is a model of the type {theirs.get('model_type')!r}, which is not supported. Supported are "
        f"{', '.join(FAMILIES)} (MiniLM and the like are of one of these), and marian for translation."
    )


def our_shape(theirs: Mapping[str, Any], family: Family, folder: Path) -> dict[str, Any]:
    """Their settings as ours.

    Raises:
        RunError: one is missing or makes no sense, or asks for a variant that ours cannot be; all are named.
    """
    found: dict[str, Any] = {
        ours: theirs[name] if theirs.get(name) is not None else DEFAULTS[family].get(ours)
        for ours, name in NAMES[family].items()
    }
    if family == "gpt2" and found["d_ff"] is None and type(found["d_model"]) is int:
        found["d_ff"] = 4 * found["d_model"]
    wrong = [f"{NAMES[family][ours]} is {value!r}" for ours, value in found.items() if not sound(ours, value)]
    wrong += [
        f"{name} is {theirs[name]!r}" for name, right in ONLY.items() if name in theirs and theirs[name] != right
    ]
    if wrong:
        raise RunError(f"{folder} cannot be a model of ours: {'; '.join(wrong)}.")
    found["activation"] = ACTIVATIONS[found["activation"]]
    tied = theirs.get("tie_word_embeddings", True) is not False
    if family == "gpt2":
        return {**found, "norm": "pre", **common(embedding_norm=False, tied=tied)}
    found.setdefault("norm_epsilon", 1e-12)
    found.setdefault("token_types", 0)
    if family == "roberta":
        found["max_positions"] -= position_offset(theirs, family)
        if found["max_positions"] < 1:
            raise RunError(f"{folder} cannot be a model of ours: max_position_embeddings leaves no position.")
    # The output layer of what guesses tokens is read as tied; a folder that says otherwise has no such head for us.
    return {**found, "norm": "post", **common(embedding_norm=True, tied=True)}


def sound(name: str, value: Any) -> bool:
    """Whether a value can be that of a setting."""
    if name in WHOLE:
        return type(value) is int and (value > 0 or name == "token_types")
    if name == "activation":
        return isinstance(value, str) and value in ACTIVATIONS
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def common(*, embedding_norm: bool, tied: bool) -> dict[str, Any]:
    """What no folder says, because it is always so."""
    return {
        "positions": "learned",
        "scale_embeddings": False,
        "bias": True,
        "embedding_norm": embedding_norm,
        "tied_embeddings": "all" if tied else "none",
    }


def position_offset(theirs: Mapping[str, Any], family: Family) -> int:
    """Rows of the table of positions before the first one."""
    padding = theirs.get("pad_token_id", 1)
    return padding + 1 if family == "roberta" and type(padding) is int else 0


def model_settings(config: ModelConfig, family: Family, rows: int, padding: int | None) -> dict[str, Any]:
    """Their config.json of a model of ours, but for its labels.

    Args:
        config: of our model.
        family: what it becomes.
        rows: of the vocabulary.
        padding: their number of padding.
    """
    ours = config.model_dump()
    found = {name: ours[mine] for mine, name in NAMES[family].items()}
    found[NAMES[family]["activation"]] = THEIRS[config.activation]
    if family == "gpt2" and config.embedding_dropout is None:
        found["embd_pdrop"] = config.dropout
    settings = {"model_type": family, "vocab_size": rows, **found, "dtype": "float32"}
    if family == "gpt2":
        return {**settings, "tie_word_embeddings": config.tied_embeddings != "none"}
    settings["pad_token_id"] = padding
    if family == "distilbert":
        settings["sinusoidal_pos_embds"] = False
    else:
        settings["type_vocab_size"] = max(1, config.token_types)
    settings["max_position_embeddings"] += position_offset(settings, family)
    return settings
