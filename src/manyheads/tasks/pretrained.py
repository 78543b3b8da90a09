"""Open a model of any task from the Hugging Face hub or from a folder."""

from __future__ import annotations

from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.errors import UsageError
from manyheads.interop.hub import folder_of, is_marian, is_pretrained
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.loading import model_class_of
from manyheads.tasks.masked_lm.encoder import Encoder
from manyheads.tasks.torch_parts import torch_module
from manyheads.tasks.translation.translator import Translator


def from_pretrained(
    name: str | Path, *, device: str = "auto", engine: str = "auto"
) -> Translator | Classifier | Generator | Encoder:
    """Open a model of any task from the Hugging Face hub or a folder; each class has this method for its own task.

    Args:
        name: user/name on the hub (extra hf), or a folder: a run, or a model of transformers
            (MarianMT, BERT, DistilBERT, RoBERTa, GPT-2).
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        engine: engine of a translator, as of `Translator.load`.

    Raises:
        RunError: there is no such model, or it cannot be read.
        UsageError: an engine was given, but the model is not a translator.
        MissingExtraError: huggingface_hub (for a name on the hub) or the engine is not installed.
    """
    folder = folder_of(name)
    task = _task_in(folder)
    opener = model_class_of(task)
    if issubclass(opener, Translator):
        return opener.from_pretrained(str(folder), device=device, engine=engine)
    if engine != "auto":
        raise UsageError(f'engine = "{engine}" is for translators, and {name} is for {task}.')
    loaded: Classifier | Generator | Encoder = opener.from_pretrained(str(folder), device=device)
    return loaded


def _task_in(folder: Path) -> str:
    """Return the task of the model in a folder; an encoder without labels is a masked language model."""
    if is_marian(folder):
        return "translation"
    if not is_pretrained(folder):
        return RunDirectory.existing(folder).config().task
    pretrained = torch_module("huggingface", "A model of transformers").read_pretrained(folder)
    if pretrained.is_decoder:
        return "language-modeling"
    return "classification" if pretrained.labels else "masked-lm"
