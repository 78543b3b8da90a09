"""Opening of a model of one task: of a run directory, or of a model in the format of transformers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

from torch import nn

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, Task
from manyheads.interop.hub import folder_of
from manyheads.interop.huggingface.reader import is_pretrained
from manyheads.interop.huggingface.task_model import TaskModel, load_task_model
from manyheads.training.precision import pick_device

__all__ = ["LoadableModel"]


class LoadableModel(ABC):
    """A model that is opened from a folder by its class.

    Attributes:
        task: task of the runs that can be opened.
        model: the model.
    """

    task: ClassVar[Task]
    model: nn.Module

    @classmethod
    @abstractmethod
    def of_run(cls, run: RunDirectory, config: Config) -> Self:
        """Open a run of this task; `config` is its configuration."""

    @classmethod
    @abstractmethod
    def of_pretrained(cls, pretrained: TaskModel) -> Self:
        """Take a model that was converted from the format of transformers."""

    @classmethod
    def load(cls, run: str | Path, *, device: str = "auto") -> Self:
        """Open a run directory.

        Args:
            run: the directory.
            device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.

        Raises:
            RunError: the directory is missing, damaged, not a run, or the run of another task.
        """
        torch_device = pick_device(device)
        directory = RunDirectory.existing(Path(run))
        loaded = cls.of_run(directory, directory.config_of(cls.task))
        loaded.model.to(torch_device)
        return loaded

    @classmethod
    def from_pretrained(cls, name: str, *, device: str = "auto") -> Self:
        """Open a model from the Hugging Face hub (extra hf) or from a folder.

        Args:
            name: user/name on the hub, or a folder: a run, or a model of transformers (BERT, DistilBERT, RoBERTa
                and others of the same architecture, with or without a head; GPT-2 for text generation).
            device: see `load`.

        Raises:
            RunError: there is no such model, or it cannot be read.
            MissingExtraError: the name is on the hub and huggingface_hub is not installed.
        """
        folder = folder_of(name)
        if not is_pretrained(folder):
            return cls.load(folder, device=device)
        loaded = cls.of_pretrained(load_task_model(cls.task, folder))
        loaded.model.to(pick_device(device))
        return loaded
