"""Read and write the files of runs and exports, which others may have made or damaged.

`bitext.files` has the drafts, the locks and the errors of the system.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bitext.files import drafting, locked_beside, os_errors, put, resolve
from manyheads.errors import ManyheadsError, RunError, SaveError

MOST_BYTES = 64 * 2**20  # of a tokenizer or a JSON document: above the size of any such file of manyheads


def saving(what: str, where: Path, kept: str = "What was saved before is intact.") -> AbstractContextManager[None]:
    """Convert the errors of writing a part of a run to a `SaveError`."""
    return os_errors(f"{what} could not be written to {where}", SaveError, kept)


def reading(path: Path, kind: type[ManyheadsError] = RunError) -> AbstractContextManager[None]:
    """Convert the errors of reading a file to an error of this kind that names the path."""
    return os_errors(f"{path} cannot be read", kind)


def plain_file(path: Path, most: int | None = None) -> Path:
    """Return the path of a regular file of at most this number of bytes.

    Raises:
        RunError: the file is missing, larger, a device or pipe, or a link that leads out of its folder.
    """
    if not path.is_file():
        raise RunError(f"{path} cannot be read: it is missing, or no file.")
    if path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve()):
        raise RunError(
            f"{path} is a link out of its folder, and is not followed. Put a copy of the file in its place."
        )
    if most is not None and (size := path.stat().st_size) > most:
        raise RunError(f"{path} is no file of ours: it has {size:,} bytes, and at most {most:,} make sense.")
    return path


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file of a run, unless it is too large for one; `plain_file` says which files are refused."""
    with reading(path), plain_file(path, most).open("rb") as file:
        return file.read(os.fstat(file.fileno()).st_size)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make a folder that appears as `out` at the end, and not at all after an error.

    If `out` has the suffix of the only file in it (``.argosmodel``), that file becomes `out`.

    Raises:
        RunError: `out` exists, or another process writes it.
        SaveError: the folder could not be written.
    """
    path = resolve(out)

    def refuse_existing() -> None:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise RunError(f"{out} exists. Choose another place, or remove it.")

    refuse_existing()
    with locked_beside(path, RunError), saving(path.name, path.parent, ""), drafting(path) as folder:
        refuse_existing()
        draft = folder / path.name
        draft.mkdir()
        yield draft
        refuse_existing()
        files = list(draft.iterdir())
        single = len(files) == 1 and bool(path.suffix) and files[0].suffix == path.suffix
        if single and path.is_dir():
            path.rmdir()
        put(files[0] if single else draft, path)
