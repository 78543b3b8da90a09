"""Build a manyheads model for a task from a folder of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyheads.config.load import parse_config
from manyheads.config.schema import TASKS, Config
from manyheads.errors import ConfigError, RunError, UsageError
from manyheads.interop.huggingface.reader import HuggingFaceModel, read_pretrained
from manyheads.model.transformer import Transformer
from manyheads.tensors.models import build_model
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import TokenizerPair

_HEAD_SEED = 1  # seed of an untrained head
_NO_LANGUAGE = "und"  # ISO 639-2 for an undetermined language


@dataclass(frozen=True)
class TaskModel:
    """A model for a task, with everything that a run needs.

    Attributes:
        config: configuration of the new run.
        tokenizer: tokenizer of its text.
        model: the model, on the CPU, in evaluation mode.
        labels: labels of a classifier, in order.
        trained: whether the head of a classifier is trained.
        new: names of the weights that the folder lacks, which are drawn at random.
    """

    config: Config
    tokenizer: HuggingFaceTokenizer
    model: Transformer
    labels: tuple[str, ...]
    trained: bool
    new: tuple[str, ...]


def build_task_model(
    pretrained: HuggingFaceModel, task: str, *, language: str | None = None, labels: Sequence[str] = ()
) -> TaskModel:
    """Build a model for a task with the weights of a folder; a head that the folder lacks is drawn at random.

    The labels of a classifier are those of the folder unless given.
    """
    architecture = TASKS[task].architecture
    names = (tuple(labels) or pretrained.labels) if architecture == "classifier" else ()
    trained = bool(pretrained.labels) and len(names) == len(pretrained.labels)
    config = _run_config(pretrained, task, language or _NO_LANGUAGE, trained)
    tokenizer = HuggingFaceTokenizer(pretrained.tokenizer.stored, keep_space=config.keep_space)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_HEAD_SEED)
        model = build_model(config, TokenizerPair(tokenizer, tokenizer, joint=True), len(names))
    tensors = pretrained.tensors(architecture)
    if architecture == "classifier" and not trained:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("output.")}
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name in parameters.keys() & tensors.keys():
            parameters[name].copy_(tensors[name])
    new = tuple(name for name in parameters if name not in tensors)
    return TaskModel(config, tokenizer, model.eval(), names, trained, new)


def load_task_model(task: str, folder: Path) -> TaskModel:
    """Load a folder as a model for its own task, with its trained head; any encoder for masked-lm.

    Raises:
        RunError: the folder is for another task, has no labels to classify by, or cannot be read.
        MissingExtraError: its vocabulary needs the `tokenizers` library.
    """
    pretrained = read_pretrained(folder)
    if TASKS[task].architecture == "masked-encoder" and not pretrained.is_decoder:
        return build_task_model(pretrained, task)
    own_task = task_of(pretrained)
    if own_task != task:
        raise RunError(
            f"{folder} is a model of the type {pretrained.tokenizer.stored.family} for {own_task}, not for {task}."
        )
    return build_task_model(pretrained, task)


def task_of(pretrained: HuggingFaceModel, labels: Sequence[str] = ()) -> str:
    """Return the task of a model.

    Raises:
        UsageError: labels were given for a language model.
        RunError: the model is an encoder without any head, and no labels were given.
    """
    if pretrained.is_decoder:
        if labels:
            raise UsageError("--labels make a classifier of an encoder, and this is a language model.")
        return "language-modeling"
    if pretrained.labels or labels:
        return "classification"
    if "masked-encoder" in pretrained.heads:
        return "masked-lm"
    raise RunError(
        f"{pretrained.where} is an encoder without a head: it classifies nothing. Train on it with "
        f"--set model.init_from={pretrained.where}, or give --labels A,B for a classifier whose head is new."
    )


def _run_config(pretrained: HuggingFaceModel, task: str, language: str, trained: bool) -> Config:
    """Return the configuration of the new run.

    Raises:
        UsageError: there is no such language.
    """
    shape, family = dict(pretrained.shape), pretrained.tokenizer.stored.family
    architecture = TASKS[task].architecture
    if architecture == "classifier":
        pooler = "relu" if family == "distilbert" else "tanh"
        shape |= {"pooling": "cls" if trained or "classifier" in pretrained.heads else "mean", "pooler": pooler}
    longest = shape["max_positions"] - (0 if architecture == "decoder" else 2)
    values: dict[str, Any] = {
        "task": task,
        "data": {"language": language, "max_length": longest},
        "tokenizer": {
            "kind": "huggingface",
            "vocab_size": max(8, pretrained.tokenizer.size),
        },
        "model": shape,
    }
    try:
        return parse_config(values, origin=pretrained.where)
    except ConfigError as error:
        raise UsageError(str(error)) from error
