"""Load a model from a run of ours, a MarianMT folder, or a name on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.interop.bundle import METADATA, LoadedModel
from manyheads.interop.hub import download, is_hub_name
from manyheads.interop.marian import is_marian, read_marian

__all__ = ["folder_of", "load_model", "load_run"]


def folder_of(where: str) -> Path:
    """Return the folder of a model: the path itself, or a copy of a model on the hub.

    Raises:
        RunError: the hub does not have the model.
        MissingExtraError: a name on the hub without huggingface_hub.
    """
    path = Path(where)
    if path.is_dir() or not is_hub_name(where):
        return path
    return download(where)


def load_model(
    where: str, *, source: str | None = None, target: str | None = None, trust_pickle: bool = False
) -> LoadedModel:
    """Load a run or a MarianMT folder, local or on the hub.

    Raises:
        RunError: the folder is neither, or cannot be read.
    """
    folder = folder_of(where)
    if (folder / METADATA).is_file():
        raise RunError(f"{folder} is an export of ours, which cannot be trained. Give the run it was made of.")
    if folder.is_dir() and is_marian(folder):
        return read_marian(folder, source=source, target=target, trust_pickle=trust_pickle)
    return load_run(folder)


def load_run(folder: Path) -> LoadedModel:
    """Load a run directory."""
    run = RunDirectory.existing(folder)
    config = run.config()
    tokenizers = run.tokenizers(config)
    return LoadedModel(config, tokenizers, run.model(config, tokenizers))
