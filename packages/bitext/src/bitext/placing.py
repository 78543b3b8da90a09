"""Write packed files under temporary names, and put them into a folder together."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from bitext.errors import DataError, require
from bitext.files import drafting, locked_beside, os_errors, put_together


@contextmanager
def locked_folder(out: Path, name: str) -> Iterator[None]:
    """Lock a name in an output folder; new folders that are empty at the end are removed.

    Raises:
        DataError: the folder is a file or cannot be written, or another process has locked the name.
    """
    if out.is_file():
        raise DataError(f"{out} is a file. Name a folder: -o DIR.")
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with locked_beside(out / name, DataError):
            yield
    finally:
        with suppress(OSError):  # a folder holds something
            for folder in made:
                folder.rmdir()


@contextmanager
def placing_files(out: Path, name: str) -> Iterator[Path]:
    """Yield a draft folder whose files are moved to `out` at the end; after an error none is left.

    What a kill leaves is removed by the next call. One process at a time writes files of a `name`.
    """
    with locked_folder(out, name), os_errors(f"{out} cannot be written", DataError), drafting(out / name) as draft:
        yield draft
        put_together(draft)


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
