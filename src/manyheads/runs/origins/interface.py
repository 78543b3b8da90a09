"""What training must know of a model it goes on from, wherever that came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from torch import Tensor

from manyheads.config.schema import Task, TokenizerConfig
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["SHAPE", "Origin"]

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


class Origin(ABC):
    """A model that training goes on from.

    Attributes:
        where: what `model.init_from` says.
        what: what it is, for messages.
        fits: the tasks that can go on from it.
    """

    where: str
    what: str
    fits: tuple[Task, ...]

    @property
    @abstractmethod
    def shape(self) -> Mapping[str, Any]:
        """Settings of `[model]` that its weights dictate."""

    @property
    def pooled(self) -> Mapping[str, Any]:
        """What its pooler reads, and how: settings of `[model]`; as in BERT unless it says otherwise."""
        return {name: self.shape.get(name, usual) for name, usual in (("pooling", "cls"), ("pooler", "tanh"))}

    @property
    @abstractmethod
    def tokenizer_config(self) -> TokenizerConfig:
        """Of its vocabulary."""

    @cached_property
    @abstractmethod
    def tokenizers(self) -> TokenizerPair:
        """Its vocabulary.

        Raises:
            RunError: it is missing or damaged.
        """

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes that it can tell apart, in order; none where it has no trained head for them."""
        return ()

    @abstractmethod
    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """The weights that a model of the task can take, by our names, heads included.

        Raises:
            RunError: they are missing or damaged.
        """

    def unused(self, task: Task) -> tuple[str, ...]:
        """The names of weights that it has and no model of the task can take."""
        return ()
