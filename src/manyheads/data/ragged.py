"""Store rows of different lengths in memory-mapped arrays.

A folder holds raw little-endian arrays, two files for a ragged one (`NAME.values`, `NAME.offsets`), and
`index.json`. It is written under a temporary name and renamed, so that a folder with an index is complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["FolderWriter", "Ragged", "open_plain", "open_ragged", "read_index", "written_folder"]

FORMAT = 2


class Ragged:
    """A sequence of rows of different lengths."""

    def __init__(self, values: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        """Take values and offsets: row i is values[offsets[i] : offsets[i + 1]]."""
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each row (N,)."""
        return np.diff(self.offsets)


def open_ragged(folder: Path, name: str, dtype: str) -> Ragged:
    """Memory-map the two files of a ragged array."""
    return Ragged(open_plain(folder, f"{name}.values", dtype), open_plain(folder, f"{name}.offsets", "<i8"))


def open_plain(folder: Path, name: str, dtype: str) -> NDArray[Any]:
    """Memory-map an array."""
    path = folder / name
    empty = path.stat().st_size == 0  # an empty file cannot be mapped
    return np.zeros(0, dtype) if empty else np.memmap(path, dtype=dtype, mode="r")


class FolderWriter:
    """Append to the arrays of a folder."""

    def __init__(self, open_file: Callable[[str], BinaryIO]) -> None:
        self.open_file = open_file
        self.files: dict[str, BinaryIO] = {}
        self.ends: dict[str, int] = {}

    def file(self, name: str) -> BinaryIO:
        """Return the open file of this name."""
        if name not in self.files:
            self.files[name] = self.open_file(name)
        return self.files[name]

    def plain(self, name: str, values: NDArray[Any]) -> None:
        """Add values at the end of an array."""
        self.file(name).write(values.tobytes())

    def ragged(self, name: str, rows: Sequence[NDArray[Any]]) -> None:
        """Add rows at the end of a ragged array."""
        if name not in self.ends:
            self.ends[name] = 0
            self.plain(f"{name}.offsets", np.zeros(1, dtype="<i8"))
        self.file(f"{name}.values").write(b"".join(row.tobytes() for row in rows))
        if rows:
            ends = self.ends[name] + np.cumsum([len(row) for row in rows], dtype="<i8")
            self.plain(f"{name}.offsets", ends)
            self.ends[name] = int(ends[-1])


@contextmanager
def written_folder(folder: Path, key: str) -> Iterator[tuple[FolderWriter, dict[str, Any]]]:
    """Write a folder atomically; an existing one is replaced.

    Args:
        folder: folder to write; its parent must exist.
        key: key for `read_index`, a hash of everything the folder is made from.

    Yields:
        A writer of its arrays, and a dictionary of further entries for its index.
    """
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    told: dict[str, Any] = {}
    try:
        with ExitStack() as stack:
            yield FolderWriter(lambda name: stack.enter_context((draft / name).open("wb"))), told
        sizes = {path.name: path.stat().st_size for path in draft.iterdir()}
        index = {"format": FORMAT, "key": key, "bytes": sizes, **told}
        (draft / "index.json").write_text(json.dumps(index), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # there is none after the renaming


def read_index(folder: Path, key: str) -> Mapping[str, Any] | None:
    """Return the index of a folder if it is complete and has this key, else None."""
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        sizes = {name: (folder / name).stat().st_size for name in index["bytes"]}
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return index if (index.get("format"), index.get("key"), index["bytes"]) == (FORMAT, key, sizes) else None
