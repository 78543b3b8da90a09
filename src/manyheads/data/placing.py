"""Write packed files under temporary names, and put them into a folder together."""

from __future__ import annotations

import gzip
import lzma
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from manyheads.errors import DataError, require

__all__ = ["open_packed", "placing_files"]


@contextmanager
def placing_files(out: Path) -> Iterator[Path]:
    """Yield a draft folder whose files are moved to `out` at the end; after an error neither is left.

    Raises:
        DataError: the files could not be written.
    """
    made = not out.exists()
    draft = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".split-", dir=out))
        yield draft
        for path in sorted(draft.iterdir()):
            path.rename(out / path.name)
    except OSError as error:
        raise DataError(
            f"{out} cannot be written: {error.strerror or error}. Free some space, or name another: -o DIR."
        ) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


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
