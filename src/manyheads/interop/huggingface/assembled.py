"""A folder of transformers as a model of ours in memory: its configuration, its vocabulary, its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manyheads.config.load import parse_config
from manyheads.config.schema import Config, Task
from manyheads.errors import ConfigError, RunError, UsageError
from manyheads.interop.huggingface.pretrained import HuggingFaceModel
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import PAD, Tokenizer

__all__ = ["Assembled", "assemble", "assemble_for", "empty_model", "task_of"]

HEAD_SEED = 1  # of a head that nobody trained
NO_LANGUAGE = "und"  # ISO 639-2 for a language that nobody names


@dataclass(frozen=True)
class Assembled:
    """All that a run needs.

    Attributes:
        config: of the run to be.
        tokenizer: of its text.
        model: on the CPU, in evaluation mode.
        labels: of a classifier, in order.
        trained: whether its head has learnt to tell them apart.
        new: weights that the folder lacks, and that are by chance.
    """

    config: Config
    tokenizer: HuggingFaceTokenizer
    model: Transformer
    labels: tuple[str, ...]
    trained: bool
    new: tuple[str, ...]


def assemble(
    found: HuggingFaceModel, task: Task, *, language: str | None = None, labels: Sequence[str] = ()
) -> Assembled:
    """A model for a task, with the weights of a folder; a head that the folder lacks is by chance.

    Args:
        found: the folder.
        task: what for; one that such a model can do.
        language: of its text.
        labels: of a classifier, what it is to tell apart; its own unless given.

    Raises:
        UsageError: the language is none.
    """
    names = (tuple(labels) or found.labels) if task == "classification" else ()
    trained = bool(found.labels) and len(names) == len(found.labels)
    config = run_config(found, task, language or NO_LANGUAGE, trained)
    tokenizer = HuggingFaceTokenizer(found.tokenizer.stored, keep_space=config.tokenizer.keep_space)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(HEAD_SEED)
        model = empty_model(config, tokenizer, len(names))
    tensors = found.tensors(task)
    if task == "classification" and not trained:
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("output.")}
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name in own.keys() & tensors.keys():
            own[name].copy_(tensors[name])
    new = tuple(name for name in own if name not in tensors)
    return Assembled(config, tokenizer, model.eval(), names, trained, new)


def assemble_for(task: Task, folder: Path) -> Assembled:
    """The model of a folder that is for this task, with its trained head; for masked-lm any encoder, head or none.

    Raises:
        RunError: it is for another task, has no labels to classify by, or cannot be read.
        MissingExtraError: its vocabulary needs the `tokenizers` library.
    """
    found = read_pretrained(folder)
    if task == "masked-lm" and not found.is_decoder:
        return assemble(found, task)
    own = task_of(found)
    if own != task:
        raise RunError(
            f"{folder} is a model of the type {found.tokenizer.stored.family} for {own}, not for {task}."
        )
    return assemble(found, task)


def task_of(found: HuggingFaceModel, labels: Sequence[str] = ()) -> Task:
    """What a model is for.

    Raises:
        UsageError: labels for a language model.
        RunError: an encoder without any head, and no labels were given.
    """
    if found.is_decoder:
        if labels:
            raise UsageError("--labels make a classifier of an encoder, and this is a language model.")
        return "language-modeling"
    if found.labels or labels:
        return "classification"
    if "masked-lm" in found.heads:
        return "masked-lm"
    raise RunError(
        f"{found.where} is an encoder without a head: it classifies nothing. Train on it with "
        f"--set model.init_from={found.where}, or give --labels A,B for a classifier whose head is new."
    )


def run_config(found: HuggingFaceModel, task: Task, language: str, trained: bool) -> Config:
    """The configuration of the run to be.

    Raises:
        UsageError: the language is none.
    """
    shape, family = dict(found.shape), found.tokenizer.stored.family
    if task == "classification":
        pooler = "relu" if family == "distilbert" else "tanh"
        shape |= {"pooling": "cls" if trained or "classification" in found.heads else "mean", "pooler": pooler}
    longest = shape["max_positions"] - (0 if task == "language-modeling" else 2)
    values: dict[str, Any] = {
        "task": task,
        "data": {"language": language, "max_length": longest},
        "tokenizer": {
            "kind": "huggingface",
            "vocab_size": max(8, found.tokenizer.size),
            "keep_space": task == "language-modeling",
        },
        "model": shape,
    }
    try:
        return parse_config(values, origin=found.where)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def empty_model(config: Config, tokenizer: Tokenizer, classes: int) -> Transformer:
    """A model of the kind that a configuration names, with weights by chance."""
    if config.task == "language-modeling":
        return DecoderOnly(config.model, tokenizer.size, absent=tokenizer.absent)
    if config.task == "masked-lm":
        return MaskedLanguageModel(config.model, tokenizer.size, pad=PAD)
    return TextClassifier(config.model, tokenizer.size, classes, pad=PAD)
