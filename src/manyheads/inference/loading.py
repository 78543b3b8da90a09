"""Open a model of one task: a run directory, or a model in the format of transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.hub import folder_of, is_pretrained
from manyheads.config.schema import Config
from manyheads.errors import refuse_pickling
from manyheads.inference.native_engine import NotNativeError, Pack, open_native
from manyheads.inference.torch_parts import torch_module
from manyheads.text.tokenizer import Tokenizer, TokenizerPair

if TYPE_CHECKING:
    from torch import nn

    from manyheads.interop.huggingface.task_model import TaskModel

_LOADING = threading.Lock()


@dataclass(frozen=True)
class NativeRun:
    """A model whose weights are packed for the C code, and the function that loads it with torch."""

    native: Any
    load: Callable[[], Any]
    __reduce__ = refuse_pickling


def open_model(
    run: RunDirectory, config: Config, tokenizer: Tokenizer, classes: int, device: str, pack: Pack[Any]
) -> Any:
    """Return the model of a run: a `NativeRun` packed by `pack`, or the model in torch where only that computes it.

    Args:
        run: the run directory.
        config: its configuration.
        tokenizer: its tokenizer.
        classes: number of classes of a classifier.
        device: see `LoadableModel.load`.
        pack: packs the tensors of the run for the C code.
    """

    def load() -> Any:
        torch_device = torch_module("devices", "The model itself").pick_device(device)
        tokenizers = TokenizerPair(tokenizer, tokenizer, joint=True)
        return (
            torch_module("models", "The model itself").load_model(run, config, tokenizers, classes).to(torch_device)
        )

    try:
        return NativeRun(open_native(run, config, device, pack), load)
    except NotNativeError as reason:
        reason.check_torch()
        return load()


class LoadableModel:
    """A model and its tokenizer, opened from a folder by the class of its task.

    Attributes:
        task: task of the runs that can be opened.
        config: configuration of the run.
        tokenizer: tokenizer of the run.
    """

    task: ClassVar[str]

    def __init__(self, config: Config, tokenizer: Tokenizer, model: Any) -> None:
        """Make an object from objects in memory, with a model in torch or a `NativeRun`; `load` opens a run."""
        self.config = config
        self.tokenizer = tokenizer
        self.opened = model

    @property
    def model(self) -> Any:
        """The model in torch, loaded at the first use; from then on it computes, because it may be changed.

        It is in evaluation mode while it computes, afterwards in its former mode.

        Raises:
            MissingExtraError: torch is not installed.
        """
        with _LOADING:
            if isinstance(self.opened, NativeRun):
                self.opened = self.opened.load()
        return self.opened

    @model.setter
    def model(self, model: Any) -> None:
        self.opened = model

    @property
    def native(self) -> Any:
        """The model in C; None where torch computes."""
        opened = self.opened
        return opened.native if isinstance(opened, NativeRun) else None

    @classmethod
    def of_run(cls, run: RunDirectory, config: Config, device: str) -> Self:
        """Open a run of this task; `config` is its configuration, `device` as in `load`."""
        raise NotImplementedError

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
            MissingExtraError: torch must compute, and is missing.
        """
        directory = RunDirectory.existing(Path(run))
        return cls.of_run(directory, directory.config_of(cls.task), device)

    @classmethod
    def load_to_serve(cls, run: Path, device: str, **_: object) -> Self:
        """Open a run to serve it; the other options are those of a translator."""
        return cls.load(run, device=device)

    @classmethod
    def from_pretrained(cls, name: str | Path, *, device: str = "auto") -> Self:
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
        huggingface = torch_module("huggingface", "A model of transformers")
        loaded = cls.of_pretrained(huggingface.load_task_model(cls.task, folder))
        loaded.model.to(torch_module("devices", "A model of transformers").pick_device(device))
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
