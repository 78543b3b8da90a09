"""A model of transformers in our words, wherever it will go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manyheads.config.schema import Task
from manyheads.text.huggingface import HuggingFaceTokenizer

__all__ = ["HuggingFaceModel"]


@dataclass(frozen=True)
class HuggingFaceModel:
    """What a folder holds.

    Attributes:
        where: the folder, for messages.
        shape: settings of `[model]`.
        tokenizer: its vocabulary.
        body: its weights up to the last hidden state, by our names.
        heads: the weights behind it, by what they are for; a classifier's may be its pooler alone.
        labels: of its classes, in order; none where it has no trained head for classes.
        unused: their names of the weights that are none of these.
    """

    where: str
    shape: Mapping[str, Any]
    tokenizer: HuggingFaceTokenizer
    body: Mapping[str, Tensor]
    heads: Mapping[Task, Mapping[str, Tensor]]
    labels: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def is_decoder(self) -> bool:
        """Whether it is a language model, and no encoder."""
        return self.tokenizer.stored.family == "gpt2"

    def tensors(self, task: Task) -> dict[str, Tensor]:
        """The weights that a model of a task can take."""
        return {**self.body, **self.heads.get(task, {})}
