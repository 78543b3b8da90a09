"""Open a model of one task: a run directory, or a model in the format of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from torch import nn

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.interop.hub import folder_of
from manyheads.interop.huggingface.reader import is_pretrained
from manyheads.interop.huggingface.task_model import TaskModel, empty_model, load_task_model
from manyheads.model.transformer import Transformer
from manyheads.text.tokenizer import Tokenizer
from manyheads.training.precision import pick_device


class LoadableModel:
    """A model and its tokenizer, opened from a folder by the class of its task.

    Attributes:
        task: task of the runs that can be opened.
        config: configuration of the run.
        tokenizer: tokenizer of the run.
        model: the model; in evaluation mode while it computes, afterwards in its former mode.
    """

    task: ClassVar[str]

    def __init__(self, config: Config, tokenizer: Tokenizer, model: Transformer) -> None:
        """Make an object from objects in memory; `load` opens a run."""
        self.config = config
        self.tokenizer = tokenizer
        self.model = model

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config) -> Self:
        """Open a run of this task; `config` is its configuration."""
        tokenizer = run.tokenizers(config).source
        return cls(config, tokenizer, run.load(config, lambda: empty_model(config, tokenizer, 0)))

    @classmethod
    def of_pretrained(cls, pretrained: TaskModel) -> Self:
        """Open a model that was converted from the format of transformers."""
        return cls(pretrained.config, pretrained.tokenizer, pretrained.model)

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


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode; restore its mode at the end."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
