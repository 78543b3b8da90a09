"""A run to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Task, TokenizerConfig
from manyheads.runs.origins.interface import HEAD, SHAPE, Origin
from manyheads.tasks.classification import Labels
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["RunOrigin"]

ENCODERS: tuple[Task, ...] = ("classification", "masked-lm")
HEADS = ("output.", "pooler.", "transform.", "transform_norm.")  # what belongs to a task, and not to the encoder


class RunOrigin(Origin):
    """See `Origin`."""

    def __init__(self, where: str, folder: Path) -> None:
        """Open a run.

        Raises:
            RunError: it is none, or damaged.
        """
        self.where = where
        self.run = RunDirectory.existing(folder)
        self.config = self.run.config()
        task = self.config.task
        self.what = f'a run of task = "{task}"'
        self.fits = ENCODERS if task in ENCODERS else (task,)

    @property
    def shape(self) -> Mapping[str, Any]:
        """As the run was configured; how a head reads is dictated by one that was trained alone."""
        kept = SHAPE + HEAD if self.labels else SHAPE
        return {name: value for name, value in self.config.model.model_dump().items() if name in kept}

    @property
    def pooled(self) -> Mapping[str, Any]:
        """As the run was configured."""
        return {name: value for name, value in self.config.model.model_dump().items() if name in HEAD}

    @property
    def tokenizer_config(self) -> TokenizerConfig:
        """As the run was configured."""
        return self.config.tokenizer

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Of the run."""
        return self.run.tokenizers(self.config)

    @property
    def labels(self) -> tuple[str, ...]:
        """Of a classifier whose head was trained."""
        if self.config.task != "classification":
            return ()
        found = Labels.of_run(self.run)
        return found.names if found.trained else ()

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """All of the best validation."""
        return self.run.weights()

    def tensors(self, task: Task) -> Mapping[str, Tensor]:
        """All of them for the same task, else those of the encoder."""
        unused = self.unused(task)
        return {name: tensor for name, tensor in self.weights.items() if name not in unused}

    def unused(self, task: Task) -> tuple[str, ...]:
        """The head of another task."""
        if task == self.config.task:
            return ()
        return tuple(sorted(name for name in self.weights if name.startswith(HEADS)))
