"""Token ids in memory-mapped arrays: a corpus is tokenised once, and may be larger than memory.

A store is a folder: `index.json` and raw little-endian arrays, one pair of files a ragged array
(`NAME.values`, `NAME.offsets`). It is written beside its place and renamed, so a folder with an index is whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from manyheads.data.corpus import Pair

__all__ = ["Ragged", "TokenStore"]

Encode = Callable[[Sequence[str]], list[list[int]]]

FORMAT = 1
CHUNK = 4_096  # pairs tokenised in one call
SIDES = ("source", "target")


class Ragged:
    """Rows of different lengths, end to end in one memory-mapped array."""

    def __init__(self, values: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        """Row i is values[offsets[i] : offsets[i + 1]]."""
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each row, (N,)."""
        return np.diff(self.offsets)


class RaggedWriter:
    """Appends rows to the two files of a ragged array."""

    def __init__(self, values: BinaryIO, offsets: BinaryIO) -> None:
        self.values = values
        self.offsets = offsets
        self.end = 0
        offsets.write(np.zeros(1, dtype="<i8").tobytes())

    def append(self, rows: Sequence[NDArray[Any]]) -> None:
        """Add rows at the end."""
        self.values.write(b"".join(row.tobytes() for row in rows))
        ends = self.end + np.cumsum([len(row) for row in rows], dtype="<i8")
        self.offsets.write(ends.tobytes())
        self.end = int(ends[-1])


class TokenStore:
    """The token ids of a corpus, and its text when subwords are sampled anew in each epoch.

    Attributes:
        source, target: ids of each pair, without marks.
        lines: line number of each pair in its file, (N,).
        texts: normalised text of both sides as UTF-8 bytes, or None.
        too_long: pairs left out because a side had more tokens than the limit.
    """

    def __init__(self, folder: Path) -> None:
        """Open a store that `build` wrote."""
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.too_long = int(index["too_long"])
        self.source, self.target = (open_ragged(folder, side, "<i4") for side in SIDES)
        self.lines = np.fromfile(folder / "lines.values", dtype="<i8")
        self.texts: tuple[Ragged, Ragged] | None = None
        if index["texts"]:
            self.texts = open_ragged(folder, "source-text", "<u1"), open_ragged(folder, "target-text", "<u1")

    def __len__(self) -> int:
        return len(self.source)

    def text(self, side: int, rows: Iterable[int]) -> list[str]:
        """Normalised text of these pairs: side 0 is the source, 1 the target."""
        assert self.texts is not None, "the store was built without texts"
        return [self.texts[side][row].tobytes().decode() for row in rows]

    @staticmethod
    def has(folder: Path, key: str) -> bool:
        """Whether the folder holds a whole store of this key (a hash of all that went into it)."""
        try:
            index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            sizes = {name: (folder / name).stat().st_size for name in index["bytes"]}
        except (OSError, ValueError, TypeError, KeyError):
            return False
        return (index.get("format"), index.get("key"), index["bytes"]) == (FORMAT, key, sizes)

    @classmethod
    def build(
        cls,
        folder: Path,
        pairs: Iterable[Pair],
        encode: tuple[Encode, Encode],
        *,
        key: str,
        max_length: int | None = None,
        keep_texts: bool = False,
    ) -> TokenStore:
        """Tokenise pairs into a folder, which is replaced when it exists.

        Args:
            folder: where to; its parent must exist.
            pairs: normalised text.
            encode: text to ids, for the source and for the target.
            key: what `has` asks for later.
            max_length: most tokens a side, marks not counted; longer pairs are left out and counted.
            keep_texts: keep the text too.
        """
        draft = folder.with_name(folder.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            too_long = write_pairs(draft, pairs, encode, max_length, keep_texts)
            sizes = {path.name: path.stat().st_size for path in draft.iterdir()}
            index = {"format": FORMAT, "key": key, "too_long": too_long, "texts": keep_texts, "bytes": sizes}
            (draft / "index.json").write_text(json.dumps(index), encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return cls(folder)


def open_ragged(folder: Path, name: str, dtype: str) -> Ragged:
    """Memory-map the two files of a ragged array."""
    offsets = np.fromfile(folder / f"{name}.offsets", dtype="<i8")
    path = folder / f"{name}.values"
    empty = path.stat().st_size == 0  # an empty file cannot be mapped
    values = np.zeros(0, dtype) if empty else np.memmap(path, dtype=dtype, mode="r")
    return Ragged(values, offsets)


def chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Pairs in lists of CHUNK."""
    iterator = iter(pairs)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def write_pairs(
    folder: Path, pairs: Iterable[Pair], encode: tuple[Encode, Encode], max_length: int | None, keep_texts: bool
) -> int:
    """Tokenise and write chunk by chunk; returns how many pairs were too long."""
    too_long = 0
    with ExitStack() as stack:

        def file(name: str) -> BinaryIO:
            return stack.enter_context((folder / name).open("wb"))

        names = [*SIDES, *(("source-text", "target-text") if keep_texts else ())]
        writers = {name: RaggedWriter(file(f"{name}.values"), file(f"{name}.offsets")) for name in names}
        lines = file("lines.values")
        for chunk in chunks(pairs):
            rows = [np.asarray(ids, "<i4") for ids in encode[0]([pair.source for pair in chunk])]
            others = [np.asarray(ids, "<i4") for ids in encode[1]([pair.target for pair in chunk])]
            longest = [max(len(row), len(other)) for row, other in zip(rows, others, strict=True)]
            kept = [place for place, length in enumerate(longest) if max_length is None or length <= max_length]
            too_long += len(chunk) - len(kept)
            if not kept:
                continue
            columns = {
                "source": [rows[place] for place in kept],
                "target": [others[place] for place in kept],
                "source-text": [as_bytes(chunk[place].source) for place in kept],
                "target-text": [as_bytes(chunk[place].target) for place in kept],
            }
            for name, writer in writers.items():
                writer.append(columns[name])
            lines.write(np.asarray([chunk[place].line for place in kept], "<i8").tobytes())
    return too_long


def as_bytes(text: str) -> NDArray[np.uint8]:
    """UTF-8 bytes of a text as an array."""
    return np.frombuffer(text.encode(), dtype="<u1")
