"""The clean text of a training corpus, read once and memory-mapped: it may be larger than memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.data.corpus import Pair
from manyheads.data.ragged import open_plain, open_ragged, read_index, written_folder

__all__ = ["TextStore", "chunked"]

CHUNK = 4_096  # pairs written at once
SIDES = ("source", "target")


class TextStore:
    """Normalised text of the pairs that are used, corpus after corpus.

    Attributes:
        lines: line number of each pair in its file (N,).
        corpora: which of several corpora each pair is of, counted from 0 (N,).
        told: what `build` was told to keep beside the text.
        sha256: fingerprint of the text, in hexadecimal.
    """

    def __init__(self, folder: Path) -> None:
        """Open a store that `build` wrote."""
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.texts = tuple(open_ragged(folder, side, "<u1") for side in SIDES)
        self.lines = open_plain(folder, "lines", "<i8")
        self.corpora = open_plain(folder, "corpora", "<u1")
        self.told: Mapping[str, Any] = index["told"]
        self.sha256 = str(index["sha256"])

    def __len__(self) -> int:
        return len(self.texts[0])

    def text(self, side: int, rows: Iterable[int]) -> list[str]:
        """Text of these pairs: side 0 is the source, 1 the target."""
        return [self.texts[side][row].tobytes().decode() for row in rows]

    def sides(self, most: int | None = None) -> tuple[Lines, Lines]:
        """The sources and the targets as sequences; of more than `most` pairs, evenly spread ones."""
        step = 1 if most is None else max(1, -(-len(self) // most))
        return Lines(self, 0, range(0, len(self), step)), Lines(self, 1, range(0, len(self), step))

    @staticmethod
    def has(folder: Path, key: str) -> bool:
        """Whether the folder holds a whole store of this key (a hash of all that went into it)."""
        return read_index(folder, key) is not None

    @classmethod
    def build(
        cls, folder: Path, corpora: Iterable[Iterable[Pair]], *, key: str, tell: Callable[[], Mapping[str, Any]]
    ) -> TextStore:
        """Write pairs into a folder, which is replaced when it exists.

        Args:
            folder: where to; its parent must exist.
            corpora: clean pairs that are used, of one corpus after the other.
            key: what `has` asks for later.
            tell: called after the last pair; what it returns is kept, and what it raises ends the building.
        """
        digest = hashlib.sha256()
        with written_folder(folder, key) as (writer, index):
            for side in SIDES:
                writer.ragged(side, [])
            writer.plain("lines", np.zeros(0, "<i8"))
            writer.plain("corpora", np.zeros(0, "<u1"))
            for number, pairs in enumerate(corpora):
                for chunk in chunked(pairs, CHUNK):
                    digest.update("".join(f"{pair.source}\t{pair.target}\n" for pair in chunk).encode())
                    writer.ragged("source", [as_bytes(pair.source) for pair in chunk])
                    writer.ragged("target", [as_bytes(pair.target) for pair in chunk])
                    writer.plain("lines", np.asarray([pair.line for pair in chunk], "<i8"))
                    writer.plain("corpora", np.full(len(chunk), number, "<u1"))
            index |= {"told": dict(tell()), "sha256": digest.hexdigest()}
        return cls(folder)


class Lines(Sequence[str]):
    """Some texts of one side, read from the disk when they are looked at."""

    def __init__(self, store: TextStore, side: int, rows: range) -> None:
        self.store = store
        self.side = side
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Lines(self.store, self.side, self.rows[place])
        return self.store.text(self.side, [self.rows[place]])[0]


def chunked(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Items in lists of a size, the last one maybe shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def as_bytes(text: str) -> NDArray[np.uint8]:
    """UTF-8 bytes of a text as an array."""
    return np.frombuffer(text.encode(), dtype="<u1")
