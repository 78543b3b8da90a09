"""Write packed files under temporary names, and put them into a folder together."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from manyheads.errors import DataError, require
from manyheads.files import drafting, locked_beside, os_errors, put


def check_folder(out: Path) -> None:
    """Raise `DataError` if an output folder is a file."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file. Name a folder: -o DIR.")


@contextmanager
def locked_folder(out: Path, name: str) -> Iterator[None]:
    """Lock a name in an output folder; a new folder that is empty at the end is removed.

    Raises:
        DataError: the folder is a file or cannot be written, or another process has locked the name.
    """
    check_folder(out)
    made = not out.exists()
    try:
        with locked_beside(out / name, DataError):
            yield
    finally:
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


@contextmanager
def placing_files(out: Path, name: str) -> Iterator[Path]:
    """Yield a draft folder whose files are moved to `out` at the end; after an error neither is left.

    Notes (.json) are moved first, then texts by name: a kill between two moves may leave one side of a text, but
    never both sides without their note. One process at a time writes files of a `name`.

    Raises:
        DataError: the files could not be written, or another process writes files of this name.
    """
    with locked_folder(out, name), os_errors(f"{out} cannot be written", DataError), drafting(out / name) as draft:
        yield draft
        for path in sorted(draft.iterdir(), key=lambda path: (path.suffix != ".json", path.name)):
            put(path, out / path.name)


def open_packed(path: Path) -> IO[bytes]:
    """Open a file for writing bytes, packed as its name says."""
    stream: Any
    match path.suffix:
        case ".gz":
            stream = gzip.GzipFile(path, "wb", compresslevel=6, mtime=0)
        case ".zst":
            stream = require("zstandard", extra="zstd", purpose=f"Writing {path}").open(path, "wb")
        case _:
            return lzma.open(path, "wb", preset=1) if path.suffix == ".xz" else path.open("wb")
    opened: IO[bytes] = stream
    return opened
