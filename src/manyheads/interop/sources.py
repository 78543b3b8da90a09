"""Open a model from wherever it may come: a run of ours, a MarianMT folder, or a name on a model hub."""

from __future__ import annotations

from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError
from manyheads.interop.carried import CARRIED
from manyheads.interop.hub import fetched, is_hub_name
from manyheads.interop.marian import is_marian, read_marian
from manyheads.interop.opened import OpenedModel

__all__ = ["folder_of", "open_model", "open_run"]


def folder_of(where: str) -> Path:
    """The folder of a model: the path itself, or a copy of what a hub has under that name.

    Raises:
        RunError: there is no such folder, and it is no name of a hub; or the hub does not have it.
        MissingExtraError: a hub's name without huggingface_hub.
    """
    path = Path(where)
    if path.is_dir() or not is_hub_name(where):
        return path
    return fetched(where)


def open_model(
    where: str, *, source: str | None = None, target: str | None = None, trust_pickle: bool = False
) -> OpenedModel:
    """The model of a run, or of a MarianMT folder, here or on a hub.

    Raises:
        RunError: it is neither, or it cannot be read; the message says why.
    """
    folder = folder_of(where)
    if (folder / CARRIED).is_file():
        raise RunError(f"{folder} is an export of ours, which cannot be trained. Give the run it was made of.")
    if folder.is_dir() and is_marian(folder):
        return read_marian(folder, source=source, target=target, trust_pickle=trust_pickle)
    return open_run(folder)


def open_run(folder: Path) -> OpenedModel:
    """The model of a run directory."""
    run = RunDirectory.existing(folder)
    config = run.config()
    tokenizers = run.tokenizers(config)
    return OpenedModel(config, tokenizers, run.model(config, tokenizers))
