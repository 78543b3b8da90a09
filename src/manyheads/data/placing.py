"""Write packed files under temporary names, and put them into a folder together."""

from __future__ import annotations

import gzip
import lzma
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import portalocker

from manyheads.errors import DataError, ManyheadsError, require

__all__ = ["LOCK", "locked_file", "locked_folder", "open_packed", "placing_files"]

LOCK = "lock"  # file that locks a folder for one writing process


@contextmanager
def locked_file(path: Path, in_use: ManyheadsError) -> Iterator[None]:
    """Lock a file until the end of the block or the process; file and folder are made if they are missing.

    Args:
        path: the file.
        in_use: error to raise if another process holds the lock.

    Raises:
        OSError: folder or file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            portalocker.lock(lock, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.AlreadyLocked as error:
            raise in_use from error
        yield


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it; raises `DataError` if another process holds it, `OSError` if it cannot be made."""
    with locked_file(folder / LOCK, DataError(f"{folder} is being written by another process. Wait for it.")):
        yield


@contextmanager
def placing_files(out: Path, name: str) -> Iterator[Path]:
    """Yield a draft folder whose files are moved to `out` at the end; after an error neither is left.

    A draft left by a killed process is removed by the next call with its name. Notes (.json) are moved first, then
    texts by name: a kill between two moves may leave one side of a text, but never both sides without their note.

    Args:
        out: folder of the files; made if it does not exist.
        name: name of the draft.

    Raises:
        DataError: the files could not be written, or another process writes files of this name.
    """
    made = not out.exists()
    draft = out / f".{name}.draft"
    try:
        with locked_folder(draft):
            try:
                for path in files_of(draft):
                    path.unlink()
                yield draft
                for path in files_of(draft):
                    path.rename(out / path.name)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"{out} cannot be written: {error.strerror or error}. Free some space, or name another: -o DIR."
        ) from error
    finally:
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def files_of(draft: Path) -> list[Path]:
    """Return the files of a draft, notes first."""
    files = (path for path in draft.iterdir() if path.name != LOCK)
    return sorted(files, key=lambda path: (path.suffix != ".json", path.name))


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
