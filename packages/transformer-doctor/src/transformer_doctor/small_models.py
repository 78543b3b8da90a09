"""Build the models of an installed package small, with its own random weights.

A class of transformers is named by the library's auto-model mapping and its model type, "ForCausalLM llama"; any
other class by its module, "package.module:Class". Sizes are known by the names of fields and arguments.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import tomllib
import typing
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer_doctor.errors import UsageError, headline
from transformer_doctor.report import reason_of
from transformer_doctor.wrapping import wrap_model

VOCABULARY, MOST_LAYERS = 23, 4
SCALES = (1, 2, 4, 8)  # times the smallest widths; the next is tried where a model cannot be built or called
MARKS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MAPPINGS: dict[str, str] = TABLES["mappings"]
_ENCODER = re.compile("Encoder(?!Decoder)|Masked|Classifi")
_DECODER = re.compile(":.*(GPT|(?<!Encoder)Decoder|Causal|Language|LM)")  # transformers' own say so themselves
_NOT_IMPORTED = {"__main__", "tests", "test", "conftest"}


class NotBuilt(Exception):
    """Reason why no small model was built."""


class NoModel(NotBuilt):
    """Reason why a class is a part of a model."""


def library_names() -> dict[str, str]:
    """Return the classes of transformers by the names of the models, mapping by mapping."""
    from transformers.models.auto import modeling_auto

    mappings = {kind: vars(modeling_auto).get(f"{name}_NAMES", {}) for kind, name in MAPPINGS.items()}
    found = {f"{kind} {family}": model for kind, names in mappings.items() for family, model in names.items()}
    joined = (f"ForConditionalGeneration encoder-decoder+{writer}" for writer in TABLES["writers"])
    found |= dict.fromkeys(joined, "EncoderDecoderModel")
    return {name: model if isinstance(model, str) else model[0] for name, model in found.items()}


def class_names(package: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the classes of modules with a forward in a package, and why modules of it were not imported, by name.

    Raises:
        UsageError: there is no such package.
    """
    try:
        root = import_module(package)
    except ImportError as error:
        raise UsageError(f"{package} cannot be imported: {headline(error)}.") from error
    found: dict[str, str] = {}
    failed: dict[str, str] = {}
    walk = pkgutil.walk_packages(getattr(root, "__path__", []), f"{package}.", lambda name: None)
    for module_name in [package, *(info.name for info in walk)]:
        if _NOT_IMPORTED & {*module_name.split(".")}:
            continue
        try:
            members = vars(import_module(module_name))
        except (Exception, SystemExit) as error:  # any exception of the package
            failed[module_name] = headline(error)
            continue
        found |= {
            f"{module_name}:{name}": name
            for name, member in members.items()
            if isinstance(member, type) and issubclass(member, nn.Module) and member.__module__ == module_name
            and member.forward is not nn.Module.forward and not name.startswith("_")
        }  # fmt: skip
    return found, failed


def small_model(name: str) -> nn.Module:
    """Return the smallest model of a name that can be built and called.

    Raises:
        NotBuilt: no size can, the model reads no token ids, or its classes are missing.
    """
    reason = None
    for scale in SCALES:
        try:
            torch.manual_seed(0)
            model = make(name, scale)
            if not any(isinstance(part, nn.Embedding) for part in model.modules()) and ":" in name:
                raise NoModel("reads no token ids")
            call_model(model, name)
        except NotBuilt:
            raise
        except Exception as error:  # any exception of the package's model
            reason = reason or NotBuilt(reason_of(error))
        else:
            return model
    assert reason is not None
    raise reason


@torch.no_grad()
def call_model(model: Any, name: str = "") -> Any:
    """Call a model of transformers once; find out how another one is called."""
    if not hasattr(getattr(model, "config", None), "to_dict"):
        options: dict[str, Any] = dict.fromkeys(("vocab_size", "pad", "bos", "eos", "masks"))
        return wrap_model(model, kind=kind_of(name), time_first=False, **options)
    ids = torch.randint(3, VOCABULARY, (2, 7))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder and type(model).__name__.endswith("Classification"):
        inputs["input_ids"][:, -1] = model.config.eos_token_id
    elif model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids[:, :5]
    return model.eval()(**inputs)


def kind_of(name: str) -> Any:
    """Return "encoder" or "decoder" for a name that says so, else None."""
    return "encoder" if _ENCODER.search(name) else "decoder" if _DECODER.search(name) else None


def make(name: str, scale: int = 1) -> nn.Module:
    """Return a model with its own random weights.

    Raises:
        NotBuilt: the model reads images or sound, an argument is unknown, or its classes are missing.
    """
    if ":" in name:
        module, _, class_name = name.partition(":")
        model: nn.Module = build(vars(import_module(module))[class_name], scale)
        return model
    config_class, model_class = _library_classes(name)
    if config_class.__name__ == "EncoderDecoderConfig":
        return model_class(_joined_config(config_class, name.partition("+")[2] or "bert", scale))
    return model_class(_as_used(_small_config(config_class, scale), name.split(" ")[0]))


def build(owner: Any, scale: int) -> Any:
    """Return an object of a class: from its configuration class, else from arguments with small values.

    Raises:
        NotBuilt: the name of a required argument says nothing about its value.
    """
    config_class: Any = getattr(owner, "config_class", None)
    if hasattr(config_class, "to_dict"):
        return owner(_small_config(config_class, scale))
    parameters = [each for each in inspect.signature(owner).parameters.values() if "VAR_" not in each.kind.name]
    try:
        hints = typing.get_type_hints(owner if hasattr(owner, "__dataclass_fields__") else owner.__init__)
    except Exception:  # names that are imported for type checking alone
        hints = {}
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    values = _small_values(defaults, scale)
    for each in parameters:
        if each.name not in defaults:
            values[each.name] = _required_value(each.name, hints.get(each.name), owner, scale)
        elif type(each.default) is int and (small := _argument(each.name)) is not None:
            values[each.name] = min(small, each.default)
    return owner(**values)


def _argument(name: str) -> float | None:
    """Return the value of an argument whose name has its own meaning outside of transformers."""
    return next((value for pattern, value in TABLES["arguments"].items() if re.search(pattern, name)), None)


def _required_value(name: str, hint: Any, owner: Any, scale: int) -> Any:
    """Return the value of an argument without a default, by its type and its name.

    Raises:
        NotBuilt: neither says which.
    """
    if hint is None and re.search(TABLES["configurations"], name):
        members = vars(sys.modules[owner.__module__]).values()
        named = [each for each in members if isinstance(each, type) and re.search("Config$|Args$", each.__name__)]
        hint = named[0] if len(named) == 1 else None
    if isinstance(hint, type) and hint.__module__ != "builtins" and hint is not torch.Tensor:
        return build(hint, scale)
    if hint is bool:
        return False
    value = _argument(name)
    if value is None:
        value = _small_number(name, sys.maxsize, scale, 2, None)
    if hint not in (None, type(value)) or value == sys.maxsize:
        raise NotBuilt(f"needs {name}")
    return value


def _library_classes(name: str) -> tuple[type, type]:
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
        raise NotBuilt(headline(error)) from error
    return config, model[0] if isinstance(model, tuple) else model


def _joined_config(config_class: type, writer: str, scale: int) -> Any:
    """Return a small configuration of BERT as the encoder and a decoder of the model type `writer`."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    parts = {
        side: {**_small_values(CONFIG_MAPPING[family]().to_dict(), scale), "model_type": family}
        for side, family in (("encoder", "bert"), ("decoder", writer))
    }
    parts["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    return config_class(**parts, decoder_start_token_id=1, pad_token_id=0)


def _small_config(config_class: type, scale: int) -> Any:
    """Return a configuration with small sizes.

    Raises:
        NotBuilt: the model reads images or sound.
    """
    parts = getattr(config_class, "sub_configs", {})
    others = [part for part in parts if any(word in part for word in TABLES["other inputs"])]
    if others:
        raise NotBuilt(f"reads more than text ({', '.join(others)})")
    default = config_class()
    values = _small_values({name: value for name, value in default.to_dict().items() if name not in parts}, scale)
    for part in parts:
        inner = getattr(default, part, None)
        if inner is not None:
            values[part] = _small_values(inner.to_dict(), scale)
    return config_class(**values)


def _as_used(config: Any, kind: str) -> Any:
    """Return a configuration with the fields that the library's documentation requires for this use."""
    if kind == "ForCausalLM" and hasattr(config, "is_decoder"):
        config.is_decoder = True
    if kind == "ForSequenceClassification" and getattr(config, "pad_token_id", 0) is None:
        config.pad_token_id = MARKS["pad_token_id"]
    if getattr(config, "is_encoder_decoder", False) and not hasattr(config, "decoder_start_token_id"):
        config.decoder_start_token_id = MARKS["pad_token_id"]
    return config


def _small_values(fields: Mapping[str, Any], scale: int) -> dict[str, Any]:
    """Return the fields to change, each with its small value."""
    layers = _layer_count(fields)
    heads = next((value for name, value in fields.items() if re.search(TABLES["heads"], name)), None)
    small: dict[str, Any] = {}
    for name, value in fields.items():
        if name in TABLES["not sizes"] or name.startswith("_") or isinstance(value, bool):
            continue
        if isinstance(value, int):
            small[name] = _small_number(name, value, scale, layers, heads)
        elif isinstance(value, (list, tuple)):
            small[name] = _small_list(name, value, scale, layers)
    changed = {name: value for name, value in small.items() if value != fields[name]}
    return changed | TABLES["special"].get(str(fields.get("model_type")), {})


def _small_number(name: str, value: int, scale: int, layers: int, heads: int | None) -> int:
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


def _layer_count(fields: Mapping[str, Any]) -> int:
    """Return a number of layers among which each type of layer is, at most `MOST_LAYERS`; else 2."""
    types = fields.get("layer_types") or fields.get("layers_block_type")
    if not isinstance(types, (list, tuple)):
        return 2
    first = [list(types).index(kind) for kind in dict.fromkeys(types)]
    return max(2, min(1 + max(first), MOST_LAYERS))


def _small_list(name: str, value: list[Any] | tuple[Any, ...], scale: int, layers: int) -> Any:
    """Return a list with an entry for each layer that is left, or of small sizes."""
    if name == "block_sizes":
        return [1, 1]
    if name.endswith("token_id"):
        return [token if token < VOCABULARY else 2 for token in value]
    if len(value) > layers and name != "keys_to_ignore_at_inference" and not name.startswith("rope"):
        value = value[:layers]
    if value and all(type(entry) is int for entry in value):
        value = [_small_number(name, entry, scale, layers, None) for entry in value]
    return list(value)
