"""Find out what `model.init_from` names."""

from __future__ import annotations

from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.interop.carried import CARRIED
from manyheads.interop.huggingface import is_pretrained
from manyheads.interop.marian import is_marian
from manyheads.interop.sources import folder_of
from manyheads.runs.origins.foreign import MarianOrigin, PretrainedOrigin
from manyheads.runs.origins.interface import Origin
from manyheads.runs.origins.run import RunOrigin

__all__ = ["open_origin"]


def open_origin(config: Config) -> Origin:
    """The model that a training goes on from.

    Raises:
        RunError: there is none of that name, it cannot be read, or it is for another kind of task.
        MissingExtraError: it needs a package that is not installed.
    """
    where = config.model.init_from
    assert where is not None
    folder = folder_of(where)
    if (folder / CARRIED).is_file():
        raise RunError(f"{folder} is an export of ours, which cannot be trained. Give the run it was made of.")
    origin: Origin
    if folder.is_dir() and is_marian(folder):
        origin = MarianOrigin(where, folder, source=config.data.source, target=config.data.target)
    elif folder.is_dir() and is_pretrained(folder):
        origin = PretrainedOrigin(where, folder, config.task)
    else:
        origin = RunOrigin(where, folder)
    if config.task not in origin.fits:
        able = " or ".join(f'"{task}"' for task in origin.fits)
        raise RunError(
            f'{where} is {origin.what}: a "{config.task}" training cannot go on from it, one for {able} can.'
        )
    return origin
