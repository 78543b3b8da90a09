"""The interface between training and a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.model.transformer import Transformer
from manyheads.runs.corpus import Corpus
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.prefetch import BatchSource
from manyheads.training.progress import Progress

__all__ = ["TrainingTask"]


class TrainingTask(ABC):
    """A task to train, with text, vocabularies and token ids.

    Attributes:
        config: configuration of the run.
        corpus: text of the run.
        tokenizers: tokenizers of both sides; twice the same for tasks other than translation.
    """

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair) -> None:
        self.config = config
        self.corpus = corpus
        self.tokenizers = tokenizers

    @property
    def too_long(self) -> int:
        """Number of training examples left out because they have too many tokens."""
        return 0

    @property
    def vocabulary(self) -> str:
        """Description of the vocabulary sizes."""
        return f"{self.tokenizers.source.size:,}"

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of a classifier, in the order of its outputs."""
        return ()

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files that a run directory has before the first step."""
        run.begin(self.config, self.tokenizers, environment)

    @abstractmethod
    def model(self) -> Transformer:
        """Build a new model on the CPU."""

    @abstractmethod
    def objective(self, model: Transformer) -> Objective:
        """Return the objective: the model with its loss."""

    @abstractmethod
    def updates(self, world: World) -> BatchSource:
        """Return the batches of this process."""

    @abstractmethod
    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Return the validation of the model."""

    @abstractmethod
    def card(self, progress: Progress) -> str:
        """Return the model card of the finished run."""
