"""What training must know of a task, and knows nowhere else."""

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
from manyheads.training.feed import Updates
from manyheads.training.log import ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.progress import Progress

__all__ = ["Kind"]


class Kind(ABC):
    """A task with its text, vocabularies and token ids at hand.

    Attributes:
        config: the configuration of the run.
        corpus: its text.
        tokenizers: of both sides; of a single text, the same twice.
    """

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair) -> None:
        self.config = config
        self.corpus = corpus
        self.tokenizers = tokenizers

    @property
    def too_long(self) -> int:
        """Training examples left out because they have too many tokens."""
        return 0

    @property
    def vocabulary(self) -> str:
        """How many tokens there are, for people."""
        return f"{self.tokenizers.source.size:,}"

    @property
    def classes(self) -> tuple[str, ...]:
        """What a classifier tells apart, in the order of its outputs."""
        return ()

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write what stands in a run directory before the first step."""
        run.begin(self.config, self.tokenizers, environment)

    @abstractmethod
    def model(self) -> Transformer:
        """A new model, on the CPU."""

    @abstractmethod
    def objective(self, model: Transformer) -> Objective:
        """A model of `model` with its loss."""

    @abstractmethod
    def updates(self, world: World) -> Updates:
        """The batches of this process."""

    @abstractmethod
    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """What scores a model of `model` at a step."""

    @abstractmethod
    def card(self, progress: Progress) -> str:
        """The model card of the finished run."""
