"""Store rows of different lengths in memory-mapped arrays.

A folder holds raw little-endian arrays, two files for a ragged array (`NAME.values`, `NAME.offsets`), and
`index.json` with the checksums of all files. The folder is written under a temporary name and renamed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.files import replacing, sum_of
from manyheads.errors import RunError
from manyheads.files import plain_file, read_bytes

_FORMAT = 4
_INDEX = "index.json"


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


class StoredFolder:
    """A folder of arrays, opened for reading."""

    def __init__(self, folder: Path) -> None:
        """Open a folder that `written_folder` wrote."""
        self.folder = folder
        self.index = json.loads(read_bytes(folder / _INDEX))

    def plain(self, name: str, dtype: str) -> NDArray[Any]:
        """Memory-map an array."""
        path = plain_file(self.folder / name)
        empty = path.stat().st_size == 0  # an empty file cannot be mapped
        return np.zeros(0, dtype) if empty else np.memmap(path, dtype=dtype, mode="r")

    def ragged(self, name: str, dtype: str) -> Ragged:
        """Memory-map the two files of a ragged array."""
        return Ragged(self.plain(f"{name}.values", dtype), self.plain(f"{name}.offsets", "<i8"))

    @staticmethod
    def has(folder: Path, key: str) -> bool:
        """Return whether the folder is unchanged and has this key, a hash of all that its content depends on."""
        try:
            index = json.loads(read_bytes(folder / _INDEX))
            found = [index.get(name) for name in ("format", "key", "index")] == [_FORMAT, key, _sum_of_index(index)]
            return found and index["files"] == _sums_of(folder)
        except (RunError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return False


class FolderWriter:
    """Append to arrays; the files of all named arrays exist even if nothing is appended.

    Attributes:
        index: further entries for the index of the folder.
    """

    def __init__(self, folder: Path, files: ExitStack, *, plain: Sequence[str], ragged: Sequence[str] = ()) -> None:
        self.index: dict[str, Any] = {}
        self.ends = dict.fromkeys(ragged, 0)
        names = [*plain, *(f"{name}.{part}" for name in ragged for part in ("values", "offsets"))]
        self.files = {name: files.enter_context((folder / name).open("wb")) for name in names}
        for name in ragged:
            self.plain(f"{name}.offsets", np.zeros(1, dtype="<i8"))

    def plain(self, name: str, values: NDArray[Any]) -> None:
        """Add values at the end of an array."""
        self.files[name].write(values.tobytes())

    def ragged(self, name: str, rows: Sequence[NDArray[Any]]) -> None:
        """Add rows at the end of a ragged array."""
        self.files[f"{name}.values"].write(b"".join(row.tobytes() for row in rows))
        if rows:
            ends = self.ends[name] + np.cumsum([len(row) for row in rows], dtype="<i8")
            self.plain(f"{name}.offsets", ends)
            self.ends[name] = int(ends[-1])


@contextmanager
def written_folder(
    folder: Path, key: str, *, plain: Sequence[str], ragged: Sequence[str] = ()
) -> Iterator[FolderWriter]:
    """Yield a writer of the arrays of a folder, which is replaced atomically; its parent must exist.

    `plain` and `ragged` are the names of the arrays, and `key` is that of `StoredFolder.has`.
    """
    with replacing(folder) as draft:
        draft.mkdir()
        with ExitStack() as files:
            writer = FolderWriter(draft, files, plain=plain, ragged=ragged)
            yield writer
        index = {"format": _FORMAT, "key": key, "files": _sums_of(draft), **writer.index}
        (draft / _INDEX).write_text(json.dumps(index | {"index": _sum_of_index(index)}), encoding="utf-8")


def _sums_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder but its index."""
    return {path.name: sum_of(path) for path in sorted(folder.iterdir()) if path.name != _INDEX}


def _sum_of_index(index: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an index without the entry that holds it."""
    rest = {name: value for name, value in index.items() if name != "index"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
