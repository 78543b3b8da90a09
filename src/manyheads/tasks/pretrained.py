"""A translator from a model hub, or from a folder of any kind we can open."""

from __future__ import annotations

from manyheads.interop.ctranslate2 import is_export
from manyheads.interop.sources import folder_of, open_model
from manyheads.tasks.translation import Translator
from manyheads.training.precision import pick_device

__all__ = ["from_pretrained"]


def from_pretrained(name: str, *, device: str = "auto", engine: str | None = None) -> Translator:
    """Open a run or a MarianMT model by its name on the Hugging Face hub, or a folder.

    Args:
        name: user/name on the hub (extra hf), or a folder: a run, its export for CTranslate2, or a MarianMT model.
        device: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.
        engine: "torch" or "ctranslate2"; what the folder is for unless given.

    Raises:
        RunError: there is no such model, or it cannot be read.
        MissingExtraError: a name on the hub without huggingface_hub, or an engine that is not installed.
    """
    folder = folder_of(name)
    if is_export(folder) or engine == "ctranslate2":
        return Translator.load(folder, device=device, engine=engine or "ctranslate2")
    opened = open_model(str(folder))
    return Translator(opened.config, opened.tokenizers, opened.model.to(pick_device(device)))
