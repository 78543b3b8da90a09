"""The model that a training starts from (`model.init_from`): a run, or a pre-trained model of another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.bundle import METADATA
from manyheads.checkpoint.hub import folder_of, is_marian, is_pretrained
from manyheads.config.schema import TASKS, Config, TokenizerConfig
from manyheads.config.schema.tasks import Architecture
from manyheads.errors import RunError
from manyheads.inference.labels import Labels
from manyheads.inference.torch_parts import torch_module
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import TokenizerPair

# Settings that the weights determine; dropout and the like stay as configured.
SHAPE = (
    "d_model",
    "d_ff",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "norm",
    "norm_epsilon",
    "positions",
    "max_positions",
    "activation",
    "tied_embeddings",
    "scale_embeddings",
    "bias",
    "token_types",
    "embedding_norm",
    "source_end_mark",
)
HEAD = ("pooling", "pooler")  # settings that the head of a trained classifier determines
_ENCODERS: tuple[Architecture, ...] = ("classifier", "masked-encoder")
_HEADS = ("output.", "pooler.", "transform.", "transform_norm.")  # weights of a task's head, not of the encoder


@dataclass(frozen=True)
class Pretrained:
    """A model that a training starts from. Tokenizers and weights are read when they are first needed.

    Attributes:
        where: value of `model.init_from`.
        shape: settings of `[model]` that the weights determine.
        pooled: settings `pooling` and `pooler` of `[model]` with which the head was trained.
        tokenizer_config: tokenizer settings of its vocabulary.
        tokenizers: returns its tokenizers; raises `RunError` if a tokenizer is missing or damaged.
        tensors: returns the weights that a model of the training's task can use, heads included, by our names;
            raises `RunError` if weights are missing or damaged.
        unused: returns the names of its weights that no model of this task can use.
        labels: classes of its trained classification head, in order; empty if it has none.
    """

    where: str
    shape: Mapping[str, Any]
    pooled: Mapping[str, Any]
    tokenizer_config: TokenizerConfig
    tokenizers: Callable[[], TokenizerPair]
    tensors: Callable[[], Mapping[str, Tensor]]
    unused: Callable[[], tuple[str, ...]] = tuple
    labels: tuple[str, ...] = ()


def open_pretrained(config: Config) -> Pretrained:
    """Open the model of `model.init_from`."""
    where = config.model.init_from
    assert where is not None
    pretrained = _read_pretrained_model(where, config)
    number = config.model.init_decoder_layers
    return pretrained if number is None else _with_layers(pretrained, number)


def _with_layers(pretrained: Pretrained, number: int) -> Pretrained:
    """Return a model with some layers of its decoder, evenly spaced from the first to the last.

    Raises:
        RunError: the model has fewer layers.
    """
    available = pretrained.shape.get("num_decoder_layers", 0)
    if number > available:
        raise RunError(
            f"{pretrained.where} has {available} decoder layers, fewer than model.init_decoder_layers = {number}."
        )
    kept_layers = [round(index * (available - 1) / max(1, number - 1)) for index in range(number)]

    def weights_of(layers: Sequence[int]) -> dict[str, Tensor]:
        prefixes = tuple(f"decoder_layers.{layer}." for layer in layers)
        return {name: tensor for name, tensor in pretrained.tensors().items() if name.startswith(prefixes)}

    def dropped() -> dict[str, Tensor]:
        return weights_of([layer for layer in range(available) if layer not in kept_layers])

    def tensors() -> dict[str, Tensor]:
        all_layers = weights_of(range(available))
        result = {name: tensor for name, tensor in pretrained.tensors().items() if name not in all_layers}
        for new, old in enumerate(kept_layers):
            prefix = f"decoder_layers.{old}."
            for name, tensor in weights_of([old]).items():
                result[f"decoder_layers.{new}.{name.removeprefix(prefix)}"] = tensor
        return result

    return replace(
        pretrained,
        shape={**pretrained.shape, "num_decoder_layers": number},
        tensors=cache(tensors),
        unused=lambda: (*pretrained.unused(), *dropped()),
    )


def _read_pretrained_model(where: str, config: Config) -> Pretrained:
    """Open the model with all its layers; see `open_pretrained`."""
    folder = folder_of(where)
    if (folder / METADATA).is_file():
        raise RunError(f"{folder} is an export of ours, which cannot be trained. Import it, or give its run.")
    if folder.is_dir() and is_marian(folder):
        return _from_marian(where, folder, config)
    if folder.is_dir() and is_pretrained(folder):
        return _from_transformers(where, folder, config.task)
    return _from_run(where, folder, config.task)


def _check_task(where: str, description: str, task: str, able: tuple[Architecture, ...]) -> None:
    """Raise `RunError` if a training of this task cannot start from the model, but one of an architecture can."""
    if TASKS[task].architecture not in able:
        names = " or ".join(f'"{name}"' for name, spec in TASKS.items() if spec.architecture in able)
        raise RunError(f'{where} is {description}: a "{task}" training cannot start from it, one for {names} can.')


def _settings(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def _from_run(where: str, folder: Path, task: str) -> Pretrained:
    """Open a run of manyheads; the pooling of a classifier is part of its shape only if its head was trained."""
    run = RunDirectory.existing(folder)
    config = run.config()
    own = config.spec.architecture
    _check_task(where, f'a run of task = "{config.task}"', task, _ENCODERS if own in _ENCODERS else (own,))
    labels = Labels.of_run(run) if own == "classifier" else None
    trained = labels.names if labels is not None and labels.trained else ()
    model = config.model.model_dump()
    weights = cache(run.weights)

    def unused() -> tuple[str, ...]:
        if TASKS[task].architecture == own:
            return ()
        return tuple(sorted(name for name in weights() if name.startswith(_HEADS)))

    def tensors() -> dict[str, Tensor]:
        others = unused()
        return {name: tensor for name, tensor in weights().items() if name not in others}

    return Pretrained(
        where=where,
        shape=_settings(model, SHAPE + HEAD if trained else SHAPE),
        pooled=_settings(model, HEAD),
        tokenizer_config=config.tokenizer,
        tokenizers=cache(lambda: run.tokenizers(config)),
        tensors=tensors,
        unused=unused,
        labels=trained,
    )


def _from_marian(where: str, folder: Path, config: Config) -> Pretrained:
    """Open a MarianMT model of transformers."""
    _check_task(where, "a MarianMT model", config.task, ("encoder-decoder",))
    opened = torch_module("marian", "A model of MarianMT").read_marian(
        folder, source=config.data.source, target=config.data.target
    )
    shape = _settings(opened.config.model.model_dump(), SHAPE)
    return Pretrained(
        where=where,
        shape=shape,
        pooled={},
        tokenizer_config=opened.config.tokenizer,
        tokenizers=lambda: opened.tokenizers,
        tensors=lambda: {name: parameter.detach() for name, parameter in opened.model.named_parameters()},
    )


def _from_transformers(where: str, folder: Path, task: str) -> Pretrained:
    """Open a BERT, DistilBERT, RoBERTa or GPT-2 of transformers; a trained head reads the first token."""
    pretrained = torch_module("huggingface", "A model of transformers").read_pretrained(folder)
    stored = pretrained.tokenizer.stored
    spec = TASKS[task]
    able: tuple[Architecture, ...] = ("decoder",) if pretrained.is_decoder else _ENCODERS
    _check_task(where, f"a model of the type {stored.family}", task, able)
    shape = _settings(pretrained.shape, SHAPE)
    if spec.architecture == "classifier" and pretrained.labels:
        shape |= {"pooling": "cls", "pooler": "relu" if stored.family == "distilbert" else "tanh"}

    @cache
    def tokenizers() -> TokenizerPair:
        tokenizer = HuggingFaceTokenizer(stored, keep_space=spec.reads_stream)
        return TokenizerPair(tokenizer, tokenizer, joint=True)

    def unused() -> tuple[str, ...]:
        heads = [tensors for head, tensors in pretrained.heads.items() if head != spec.architecture]
        return (*chain(*heads), *pretrained.unused)

    return Pretrained(
        where=where,
        shape=shape,
        pooled={"pooling": "cls", "pooler": "tanh"} | _settings(shape, HEAD),  # as in BERT
        tokenizer_config=TokenizerConfig(kind="huggingface", vocab_size=max(8, pretrained.tokenizer.size)),
        tokenizers=tokenizers,
        tensors=lambda: pretrained.tensors(spec.architecture),
        unused=unused,
        labels=pretrained.labels,
    )
