"""A model of transformers to go on from: a MarianMT for translation, an encoder, or a GPT-2."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.config.schema import Task, TokenizerConfig
from manyheads.interop.huggingface import Pretrained, read_pretrained
from manyheads.interop.marian import read_marian
from manyheads.interop.opened import OpenedModel
from manyheads.runs.origins.interface import SHAPE, Origin
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["MarianOrigin", "PretrainedOrigin", "same_twice"]


class MarianOrigin(Origin):
    """See `Origin`."""

    what = "a MarianMT model"
    fits = ("translation",)

    def __init__(self, where: str, folder: Path, *, source: str, target: str) -> None:
        """Of a folder and the languages that are translated between."""
        self.where = where
        self.folder = folder
        self.languages = source, target

    @cached_property
    def opened(self) -> OpenedModel:
        """Configuration, tokenizers and model."""
        source, target = self.languages
        return read_marian(self.folder, source=source, target=target)

    @property
    def shape(self) -> Mapping[str, Any]:
        """As its config.json says."""
        return {name: value for name, value in self.opened.config.model.model_dump().items() if name in SHAPE}

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """Of its pieces."""
        return self.opened.config.tokenizer

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Its pieces."""
        return self.opened.tokenizers

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """All of them."""
        return {name: parameter.detach() for name, parameter in self.opened.model.named_parameters()}


class PretrainedOrigin(Origin):
    """See `Origin`; of BERT, DistilBERT, RoBERTa and GPT-2."""

    def __init__(self, where: str, folder: Path, task: Task) -> None:
        """Of a folder, for a task.

        Raises:
            RunError: its type is not supported, or it cannot be read.
            MissingExtraError: its vocabulary needs the `tokenizers` library.
        """
        self.where = where
        self.task = task
        self.found: Pretrained = read_pretrained(folder)
        decoder = self.found.is_decoder
        self.what = f"a model of the type {self.found.tokenizer.stored.family}"
        self.fits = ("language-modeling",) if decoder else ("classification", "masked-lm")

    @property
    def shape(self) -> Mapping[str, Any]:
        """As its config.json says; a head that was trained reads the first token."""
        found = {name: value for name, value in self.found.shape.items() if name in SHAPE}
        if self.task == "classification" and self.found.labels:
            relu = self.found.tokenizer.stored.family == "distilbert"
            found |= {"pooling": "cls", "pooler": "relu" if relu else "tanh"}
        return found

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """Of its vocabulary."""
        return TokenizerConfig(
            kind="huggingface",
            vocab_size=max(8, self.found.tokenizer.size),
            keep_space=self.task == "language-modeling",
        )

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Its vocabulary."""
        return same_twice(
            HuggingFaceTokenizer(self.found.tokenizer.stored, keep_space=self.task == "language-modeling")
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Of its classes."""
        return self.found.labels

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """The body, and the head for this task where there is one."""
        return self.found.tensors(task)

    def unused(self, task: Task) -> tuple[str, ...]:
        """What is for other tasks, and what we know nothing of."""
        others = [name for head, tensors in self.found.heads.items() if head != task for name in tensors]
        return (*others, *self.found.unused)


def same_twice(tokenizer: HuggingFaceTokenizer) -> TokenizerPair:
    """A vocabulary for both sides."""
    return TokenizerPair(tokenizer, tokenizer, joint=True)
