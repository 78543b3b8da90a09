"""What training must know of a task, and knows nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.model.transformer import Transformer
from manyheads.runs.corpus import Corpus
from manyheads.training.distributed import World
from manyheads.training.feed import Updates
from manyheads.training.log import ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.progress import Progress

__all__ = ["Kind"]


class Kind(Protocol):
    """A task with its text, vocabularies and token ids at hand.

    Attributes:
        config: the configuration of the run.
        corpus: its text.
    """

    config: Config
    corpus: Corpus

    @property
    def too_long(self) -> int:
        """Training examples left out because they have too many tokens."""
        ...

    @property
    def vocabulary(self) -> str:
        """How many tokens there are, for people."""
        ...

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write what stands in a run directory before the first step."""
        ...

    def model(self) -> Transformer:
        """A new model, on the CPU."""
        ...

    def objective(self, model: Transformer) -> Objective:
        """A model of `model` with its loss."""
        ...

    def updates(self, world: World) -> Updates:
        """The batches of this process."""
        ...

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """What scores a model of `model` at a step."""
        ...

    def card(self, progress: Progress) -> str:
        """The model card of the finished run."""
        ...
