"""Read a BERT, DistilBERT, RoBERTa or GPT-2 folder of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import read_json
from manyheads.config.schema import ModelConfig
from manyheads.config.schema.base import SettingsError
from manyheads.config.schema.tasks import Architecture
from manyheads.errors import RunError
from manyheads.interop.huggingface.names import Entry, body, head, our_tensors, their_names
from manyheads.interop.huggingface.settings import FAMILIES, family_of, our_shape, position_offset
from manyheads.interop.huggingface.tokenizers import read_tokenizer
from manyheads.interop.weights import read_weights
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.text.huggingface import Family, HuggingFaceTokenizer

# Weights of heads that manyheads does not use, and tables that are computed, not trained.
_KNOWN_WEIGHTS = (
    "cls.",
    "pooler.",
    "classifier.",
    "pre_classifier.",
    "lm_head.",
    "vocab_",
    "qa_outputs.",
    "score.",
    "dropout.",
)
_COMPUTED = (".position_ids", ".attn.bias", ".attn.masked_bias", "embeddings.token_type_ids")
_HEADS: tuple[Architecture, ...] = ("classifier", "masked-encoder")
_MOST_NAMED = 5


@dataclass(frozen=True)
class HuggingFaceModel:
    """A folder of transformers, converted to the names and settings of manyheads.

    Attributes:
        where: the folder, for messages.
        shape: settings of `[model]`.
        tokenizer: its vocabulary.
        body: its weights up to the last hidden state, by manyheads names.
        heads: the weights of its heads by architecture; a classifier may have only its pooler.
        labels: labels of its classes, in order; empty without a trained head for classes.
        unused: names in transformers of the other weights.
    """

    where: str
    shape: Mapping[str, Any]
    tokenizer: HuggingFaceTokenizer
    body: Mapping[str, Tensor]
    heads: Mapping[Architecture, Mapping[str, Tensor]]
    labels: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def is_decoder(self) -> bool:
        """Return whether this is a language model instead of an encoder."""
        return self.tokenizer.stored.family == "gpt2"

    def tensors(self, architecture: Architecture) -> dict[str, Tensor]:
        """Return the weights for a model of an architecture."""
        return {**self.body, **self.heads.get(architecture, {})}


def read_pretrained(folder: Path, *, trust_pickle: bool = False) -> HuggingFaceModel:
    """Read a folder with config.json, weights (`read_weights`), and tokenizer.json or an older vocabulary.

    Raises:
        RunError: the type is not supported, a file is missing or damaged, manyheads has no such variant, or weights
            are missing, unknown, of another shape, or not finite; the message names them.
        MissingExtraError: the `tokenizers` library is not installed.
    """
    settings = read_json(folder / "config.json")
    family = family_of(settings, folder)
    shape = our_shape(settings, family, folder)
    try:
        config = ModelConfig(**shape)
    except SettingsError as error:
        raise RunError(f"{folder / 'config.json'} makes no model: {error}") from error
    weights = _rename_weights(read_weights(folder, trust_pickle=trust_pickle), family, config)
    table = "wte.weight" if family == "gpt2" else "embeddings.word_embeddings.weight"
    absent = (name for name in their_names(body(family, config)) if name not in weights)
    missing = list(islice(absent, _MOST_NAMED + 1))
    if missing:
        raise RunError(f"{folder} lacks weights that its config.json asks for: {_first_names(missing)}.")
    rows = weights[table].size(0) if weights[table].ndim == 2 else 0
    if settings.get("vocab_size", rows) != rows or not rows:
        raise RunError(f"{folder}: {table} has {rows:,} rows, and vocab_size is {settings.get('vocab_size')!r}.")
    tokenizer = read_tokenizer(folder, family, rows)
    heads = {name: _present_head(family, name, weights) for name in _HEADS}
    labels = _labels_of(settings, heads["classifier"], weights)
    if not labels:
        heads["classifier"] = _poolers(heads["classifier"])
    if settings.get("tie_word_embeddings") is False or (config.activation != "gelu" and family != "roberta"):
        heads["masked-encoder"] = []  # the head in manyheads is tied to the embeddings, and has gelu
    used = set(their_names([*body(family, config), *chain(*heads.values())]))
    unknown = sorted(name for name in weights if name not in used and not name.startswith(_KNOWN_WEIGHTS))
    if unknown:
        raise RunError(f"{folder} has weights that its config.json does not speak of: {_first_names(unknown)}.")
    offset = position_offset(settings, family)
    model = HuggingFaceModel(
        where=str(folder),
        shape=shape,
        tokenizer=tokenizer,
        body=our_tensors(body(family, config), weights, tokenizer, offset, folder),
        heads={
            name: our_tensors(entries, weights, tokenizer, offset, folder)
            for name, entries in heads.items()
            if entries
        },
        labels=labels,
        unused=tuple(sorted(weights.keys() - used)),
    )
    _check_shapes(model, config)
    return model


def _rename_weights(weights: Mapping[str, Tensor], family: Family, config: ModelConfig) -> dict[str, Tensor]:
    """Return weights of transformers under current names, without computed tables and copies."""
    tensors = {_rename(name, family): tensor for name, tensor in weights.items() if not name.endswith(_COMPUTED)}
    for name, old in FAMILIES[family]["older_names"]:
        for kind in ("weight", "bias"):
            if f"{name}.{kind}" not in tensors and f"{old}.{kind}" in tensors:
                tensors[f"{name}.{kind}"] = tensors.pop(f"{old}.{kind}")
    for name in FAMILIES[family]["copies"]:
        if config.tied_embeddings != "none":
            tensors.pop(name, None)
    return tensors


def _rename(name: str, family: Family) -> str:
    """Return a name without the prefix of the model, with the current name of a norm."""
    plain = name.removeprefix(FAMILIES[family]["prefix"])
    return plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")


def _present_head(family: Family, architecture: Architecture, weights: Mapping[str, Tensor]) -> list[Entry]:
    """Return the entries of a complete head, or only those of the pooler of a classifier."""
    entries = list(head(family, architecture))
    parts = (entries, _poolers(entries))
    return next((part for part in parts if all(name in weights for name in their_names(part))), [])


def _poolers(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.name.startswith("pooler.")]


def _labels_of(settings: Mapping[str, Any], entries: list[Entry], weights: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return the names of the classes of a head, in order; empty unless it assigns one class to each text."""
    outputs = [entry for entry in entries if entry.name == "output.bias"]
    count = weights[outputs[0].hf_names[0]].numel() if outputs else 0
    if count < 2 or settings.get("problem_type") not in (None, "single_label_classification"):
        return ()
    names = settings.get("id2label")
    labels = [names.get(str(number)) for number in range(count)] if isinstance(names, Mapping) else []
    valid = len({*labels}) == count and all(isinstance(name, str) and name.strip() for name in labels)
    return tuple(str(name) for name in labels) if valid else tuple(f"LABEL_{number}" for number in range(count))


def _check_shapes(pretrained: HuggingFaceModel, config: ModelConfig) -> None:
    """Compare the shapes of the weights with config.json, without memory for a model; raises `RunError`."""
    size = pretrained.tokenizer.size
    try:
        with torch.device("meta"):
            models: list[Transformer] = [DecoderOnly(config, size)]
            if not pretrained.is_decoder:
                classes = max(1, len(pretrained.labels))
                models = [TextClassifier(config, size, classes), MaskedLanguageModel(config, size)]
    except (RuntimeError, OverflowError) as error:
        raise RunError(f"{pretrained.where} asks for a model that cannot be: {error}") from error
    for model, architecture in zip(models, _HEADS, strict=False):
        shapes = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
        tensors = pretrained.body if pretrained.is_decoder else pretrained.tensors(architecture)
        mismatches = [
            f"{name} is {tuple(tensor.shape)}, not {shapes.get(name)}"
            for name, tensor in tensors.items()
            if shapes.get(name) != tuple(tensor.shape)
        ]
        if mismatches:
            raise RunError(
                f"{pretrained.where} has weights that do not fit its config.json: {'; '.join(mismatches[:3])}."
            )
