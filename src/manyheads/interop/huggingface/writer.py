"""Write a manyheads encoder or language model as a folder that transformers opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from manyheads.checkpoint import as_json, write_atomically, write_tensors
from manyheads.config.schema import Config, ModelConfig
from manyheads.errors import RunError
from manyheads.interop.huggingface.names import body, head, their_tensors
from manyheads.interop.huggingface.settings import FAMILIES, model_settings
from manyheads.interop.huggingface.tokenizers import write_tokenizer
from manyheads.model.transformer import Transformer
from manyheads.text.huggingface import Family, HuggingFaceTokenizer
from manyheads.text.tokenizer import Tokenizer

_DISTILBERT_EPSILON = 1e-12  # fixed in its layer norm


def _tokenizer_unless(reasons: Sequence[str], config: Config, tokenizer: Tokenizer) -> HuggingFaceTokenizer:
    """Return the tokenizer; raises `RunError` if there are reasons why transformers has no such model."""
    if reasons or not isinstance(tokenizer, HuggingFaceTokenizer):
        family = _family_of_tokenizer(config, tokenizer)
        raise RunError(f"a model of the type {family} of transformers cannot be this one: {'; '.join(reasons)}.")
    return tokenizer


def _family_of_tokenizer(config: Config, tokenizer: Tokenizer) -> Family:
    """Return the type of the model of a vocabulary, or the usual type for a task."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.stored.family
    return "gpt2" if config.spec.architecture == "decoder" else "bert"


def _body_reasons(config: Config, tokenizer: Tokenizer) -> list[str]:
    """Return the reasons why transformers has no such layers, embeddings or vocabulary."""
    model, architecture, family = config.model, config.spec.architecture, _family_of_tokenizer(config, tokenizer)
    decoder, distilled = family == "gpt2", family == "distilbert"
    norm, activations = ("pre" if decoder else "post"), ("gelu", "gelu-tanh", "relu", "swish")
    pretrained = isinstance(tokenizer, HuggingFaceTokenizer)
    kind = config.tokenizer.kind
    checks = (
        (not pretrained, f'tokenizer.kind = "{kind}" (its vocabulary must have come with such a model)'),
        (decoder != (architecture == "decoder"), f'task = "{config.task}"'),
        (model.norm != norm, f'model.norm = "{model.norm}" (it has "{norm}")'),
        (model.positions != "learned", f'model.positions = "{model.positions}" (it has "learned")'),
        (
            model.activation not in activations,
            f'model.activation = "{model.activation}" (it has {", ".join(activations)})',
        ),
        (model.scale_embeddings, "model.scale_embeddings = true"),
        (not model.bias, "model.bias = false"),
        (model.embedding_norm == decoder, f"model.embedding_norm = {str(model.embedding_norm).lower()}"),
        ((decoder or distilled) and model.token_types > 0, f"model.token_types = {model.token_types}"),
        (
            distilled and model.norm_epsilon != _DISTILBERT_EPSILON,
            f"model.norm_epsilon = {model.norm_epsilon} (it has {_DISTILBERT_EPSILON})",
        ),
    )
    return [reason for wrong, reason in checks if wrong]


def _head_reasons(config: Config, tokenizer: Tokenizer) -> list[str]:
    """Return the reasons why transformers has no such head."""
    model, architecture, family = config.model, config.spec.architecture, _family_of_tokenizer(config, tokenizer)
    pooler = "relu" if family == "distilbert" else "tanh"
    classifier = architecture == "classifier"
    checks = (
        (
            architecture == "masked-encoder" and (model.activation != "gelu" or model.tied_embeddings == "none"),
            "a head of another activation than gelu, or that is not tied to the embeddings",
        ),
        (
            classifier and model.pooling != "cls",
            f'model.pooling = "{model.pooling}" (it has "cls"; --to sentence-transformers holds both)',
        ),
        (classifier and model.pooler != pooler, f'model.pooler = "{model.pooler}" (it has "{pooler}")'),
    )
    return [reason for wrong, reason in checks if wrong]


def write_pretrained(
    folder: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: Sequence[str] = ()
) -> None:
    """Write config.json, with the labels of a classifier in order, model.safetensors and the tokenizer's files."""
    reasons = [*_body_reasons(config, tokenizer), *_head_reasons(config, tokenizer)]
    checked = _tokenizer_unless(reasons, config, tokenizer)
    family = checked.stored.family
    entries = [*body(family, config.model), *head(family, config.spec.architecture)]
    tensors = their_tensors(entries, dict(model.named_parameters()), checked)
    _write_parts(
        folder, config, checked, tensors, FAMILIES[family]["architectures"][config.spec.architecture], labels
    )


def write_encoder(
    folder: Path, config: Config, tokenizer: Tokenizer, model: Transformer, labels: Sequence[str] = ()
) -> None:
    """Write a model without its head, for AutoModel, as `write_pretrained`.

    The pooler of a classifier is kept if such a model has one; it reads the first token or the mean, as in
    manyheads.
    """
    checked = _tokenizer_unless(_body_reasons(config, tokenizer), config, tokenizer)
    family = checked.stored.family
    parameters = dict(model.named_parameters())
    with_prefix = their_tensors(body(family, config.model), parameters, checked)
    tensors = {name.removeprefix(FAMILIES[family]["prefix"]): tensor for name, tensor in with_prefix.items()}
    if family != "distilbert" and "pooler.weight" in parameters:
        tensors |= {
            f"pooler.dense.{kind}": parameters[f"pooler.{kind}"].detach().float() for kind in ("weight", "bias")
        }
    _write_parts(folder, config, checked, tensors, FAMILIES[family]["architectures"]["encoder"], labels)


def _write_parts(
    folder: Path,
    config: Config,
    tokenizer: HuggingFaceTokenizer,
    tensors: Mapping[str, Tensor],
    architecture: str,
    labels: Sequence[str],
) -> None:
    """Write the files of a folder from weights under the names of transformers."""
    stored, shape, weights = tokenizer.stored, config.model, dict(tensors)
    family = stored.family
    settings = model_settings(shape, family, stored.rows, stored.specials[1])
    if family in ("bert", "roberta") and not shape.token_types:
        headless = architecture == FAMILIES[family]["architectures"]["encoder"]
        prefix = "" if headless else FAMILIES[family]["prefix"]
        weights[f"{prefix}embeddings.token_type_embeddings.weight"] = torch.zeros(1, shape.d_model)
    end = stored.specials[3]
    settings |= {"bos_token_id": end if family == "gpt2" else stored.specials[2], "eos_token_id": end}
    if labels:
        settings["id2label"] = {str(number): label for number, label in enumerate(labels)}
        settings["label2id"] = {label: number for number, label in enumerate(labels)}
    write_tensors(folder / "model.safetensors", weights)
    settings["architectures"] = [architecture]
    write_atomically(folder / "config.json", as_json(settings))
    write_tokenizer(folder, tokenizer, longest(shape, config))


def longest(shape: ModelConfig, config: Config) -> int:
    """Return the maximum number of tokens of a text with its marks."""
    if config.spec.architecture == "decoder":
        return config.data.max_length
    return min(config.data.max_length + 2, shape.max_positions)
