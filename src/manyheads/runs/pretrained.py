"""The model that a training starts from (`model.init_from`): a run, or a pre-trained model of another program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, Task, TokenizerConfig
from manyheads.errors import RunError
from manyheads.interop.carried import CARRIED
from manyheads.interop.huggingface import HuggingFaceModel, is_pretrained, read_pretrained
from manyheads.interop.marian import is_marian, read_marian
from manyheads.interop.opened import OpenedModel
from manyheads.interop.sources import folder_of
from manyheads.tasks.classification import Labels
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import TokenizerPair

__all__ = [
    "SHAPE",
    "Pretrained",
    "PretrainedMarian",
    "PretrainedRun",
    "PretrainedTransformers",
    "open_pretrained",
    "same_twice",
]

# What the weights dictate; dropout and the like stay as configured.
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
)
HEAD = ("pooling", "pooler")  # and what a trained classifier's head dictates


class Pretrained(ABC):
    """A model that a training starts from.

    Attributes:
        where: value of `model.init_from`.
        what: description for messages.
        fits: tasks that can start from it.
    """

    where: str
    what: str
    fits: tuple[Task, ...]

    @property
    @abstractmethod
    def shape(self) -> Mapping[str, Any]:
        """Settings of `[model]` that the weights determine."""

    @property
    def pooled(self) -> Mapping[str, Any]:
        """Settings `pooling` and `pooler` of `[model]` (default: as in BERT)."""
        return {name: self.shape.get(name, usual) for name, usual in (("pooling", "cls"), ("pooler", "tanh"))}

    @property
    @abstractmethod
    def tokenizer_config(self) -> TokenizerConfig:
        """Tokenizer settings of its vocabulary."""

    @cached_property
    @abstractmethod
    def tokenizers(self) -> TokenizerPair:
        """Its tokenizers.

        Raises:
            RunError: a tokenizer is missing or damaged.
        """

    @property
    def labels(self) -> tuple[str, ...]:
        """Classes of its trained classification head, in order; empty if it has none."""
        return ()

    @abstractmethod
    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """Return the weights that a model of this task can use, heads included, by our names.

        Raises:
            RunError: weights are missing or damaged.
        """

    def unused(self, task: Task) -> tuple[str, ...]:
        """Return the names of its weights that no model of this task can use."""
        return ()


ENCODERS: tuple[Task, ...] = ("classification", "masked-lm")
HEADS = ("output.", "pooler.", "transform.", "transform_norm.")  # what belongs to a task, and not to the encoder


class PretrainedRun(Pretrained):
    """A run of manyheads."""

    def __init__(self, where: str, folder: Path) -> None:
        """Open a run.

        Raises:
            RunError: the folder is not a run, or damaged.
        """
        self.where = where
        self.run = RunDirectory.existing(folder)
        self.config = self.run.config()
        task = self.config.task
        self.what = f'a run of task = "{task}"'
        self.fits = ENCODERS if task in ENCODERS else (task,)

    @property
    def shape(self) -> Mapping[str, Any]:
        """Settings of the run; pooling only if it has a trained head."""
        kept = SHAPE + HEAD if self.labels else SHAPE
        return {name: value for name, value in self.config.model.model_dump().items() if name in kept}

    @property
    def pooled(self) -> Mapping[str, Any]:
        """Settings of the run."""
        return {name: value for name, value in self.config.model.model_dump().items() if name in HEAD}

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """Settings of the run."""
        return self.config.tokenizer

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Tokenizers of the run."""
        return self.run.tokenizers(self.config)

    @property
    def labels(self) -> tuple[str, ...]:
        """Classes of a classifier with a trained head."""
        if self.config.task != "classification":
            return ()
        found = Labels.of_run(self.run)
        return found.names if found.trained else ()

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Best weights of the run."""
        return self.run.weights()

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """Return all weights for the same task, else those of the encoder."""
        unused = self.unused(task)
        return {name: tensor for name, tensor in self.weights.items() if name not in unused}

    def unused(self, task: Task) -> tuple[str, ...]:
        """Return the names of the head of another task."""
        if task == self.config.task:
            return ()
        return tuple(sorted(name for name in self.weights if name.startswith(HEADS)))


class PretrainedMarian(Pretrained):
    """A MarianMT model of transformers."""

    what = "a MarianMT model"
    fits = ("translation",)

    def __init__(self, where: str, folder: Path, *, source: str, target: str) -> None:
        """Take the folder and the two languages."""
        self.where = where
        self.folder = folder
        self.languages = source, target

    @cached_property
    def opened(self) -> OpenedModel:
        """Configuration, tokenizers and model, read on first use."""
        source, target = self.languages
        return read_marian(self.folder, source=source, target=target)

    @property
    def shape(self) -> Mapping[str, Any]:
        """Settings from its config.json."""
        return {name: value for name, value in self.opened.config.model.model_dump().items() if name in SHAPE}

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """Tokenizer settings of its pieces."""
        return self.opened.config.tokenizer

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Its tokenizers."""
        return self.opened.tokenizers

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """Return all weights."""
        return {name: parameter.detach() for name, parameter in self.opened.model.named_parameters()}


class PretrainedTransformers(Pretrained):
    """A BERT, DistilBERT, RoBERTa or GPT-2 of transformers."""

    def __init__(self, where: str, folder: Path, task: Task) -> None:
        """Open a folder for a task.

        Raises:
            RunError: the type of the model is not supported, or it cannot be read.
            MissingExtraError: the vocabulary needs the `tokenizers` library.
        """
        self.where = where
        self.task = task
        self.found: HuggingFaceModel = read_pretrained(folder)
        decoder = self.found.is_decoder
        self.what = f"a model of the type {self.found.tokenizer.stored.family}"
        self.fits = ("language-modeling",) if decoder else ("classification", "masked-lm")

    @property
    def shape(self) -> Mapping[str, Any]:
        """Settings from its config.json; a trained classification head reads the first token."""
        found = {name: value for name, value in self.found.shape.items() if name in SHAPE}
        if self.task == "classification" and self.found.labels:
            relu = self.found.tokenizer.stored.family == "distilbert"
            found |= {"pooling": "cls", "pooler": "relu" if relu else "tanh"}
        return found

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """Tokenizer settings of its vocabulary."""
        return TokenizerConfig(
            kind="huggingface",
            vocab_size=max(8, self.found.tokenizer.size),
            keep_space=self.task == "language-modeling",
        )

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Its tokenizers."""
        return same_twice(
            HuggingFaceTokenizer(self.found.tokenizer.stored, keep_space=self.task == "language-modeling")
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of its classes."""
        return self.found.labels

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """Return the weights of the body, and of the head for this task if there is one."""
        return self.found.tensors(task)

    def unused(self, task: Task) -> tuple[str, ...]:
        """Return the names of heads for other tasks, and of unknown weights."""
        others = [name for head, tensors in self.found.heads.items() if head != task for name in tensors]
        return (*others, *self.found.unused)


def same_twice(tokenizer: HuggingFaceTokenizer) -> TokenizerPair:
    """Return a pair with the same tokenizer for both sides."""
    return TokenizerPair(tokenizer, tokenizer, joint=True)


def open_pretrained(config: Config) -> Pretrained:
    """Open the model of `model.init_from`.

    Raises:
        RunError: there is no such model, it cannot be read, or it is for another task.
        MissingExtraError: the model needs a package that is not installed.
    """
    where = config.model.init_from
    assert where is not None
    folder = folder_of(where)
    if (folder / CARRIED).is_file():
        raise RunError(f"{folder} is an export of ours, which cannot be trained. Give the run it was made of.")
    origin: Pretrained
    if folder.is_dir() and is_marian(folder):
        origin = PretrainedMarian(where, folder, source=config.data.source, target=config.data.target)
    elif folder.is_dir() and is_pretrained(folder):
        origin = PretrainedTransformers(where, folder, config.task)
    else:
        origin = PretrainedRun(where, folder)
    if config.task not in origin.fits:
        able = " or ".join(f'"{task}"' for task in origin.fits)
        raise RunError(
            f'{where} is {origin.what}: a "{config.task}" training cannot go on from it, one for {able} can.'
        )
    return origin
