"""Store the clean text of a training corpus in memory-mapped files: read once, maybe larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.data.corpus import Pair
from manyheads.data.ragged import StoredFolder, written_folder

__all__ = ["SIDES", "TextStore", "chunked"]

CHUNK = 4_096  # pairs written at once
SIDES = ("source", "target")


class TextStore(StoredFolder):
    """Normalised text of the kept pairs, one corpus after another.

    Attributes:
        lines: line number of each pair in its file (N,).
        corpora: index of the corpus of each pair, counted from 0 (N,).
        details: information that `build` stored beside the text.
        sha256: SHA-256 of the text, in hexadecimal.
    """

    def __init__(self, folder: Path) -> None:
        """Open a store that `build` wrote."""
        super().__init__(folder)
        self.texts = tuple(self.ragged(side, "<u1") for side in SIDES)
        self.lines = self.plain("lines", "<i8")
        self.corpora = self.plain("corpora", "<u1")
        self.details: Mapping[str, Any] = self.index.get("details", {})
        self.sha256 = str(self.index["sha256"])

    def __len__(self) -> int:
        return len(self.texts[0])

    def text(self, side: int, rows: Iterable[int]) -> list[str]:
        """Return the texts of one side of some pairs: side 0 is the source, 1 the target."""
        return [self.texts[side][row].tobytes().decode() for row in rows]

    def sides(self, most: int | None = None) -> tuple[Lines, Lines]:
        """Return sources and targets as sequences; if there are more than `most` pairs, evenly spaced ones."""
        step = 1 if most is None else max(1, -(-len(self) // most))
        return Lines(self, 0, range(0, len(self), step)), Lines(self, 1, range(0, len(self), step))

    @classmethod
    def build(
        cls, folder: Path, corpora: Iterable[Iterable[Pair]], *, key: str, details: Callable[[], Mapping[str, Any]]
    ) -> TextStore:
        """Write pairs into a folder; an existing folder is replaced.

        Args:
            folder: folder to write; its parent must exist.
            corpora: the kept, normalised pairs of each corpus.
            key: key for `has`.
            details: called after the last pair; its result is stored, an exception ends the building.
        """
        digest = hashlib.sha256()
        with written_folder(folder, key, plain=("lines", "corpora"), ragged=SIDES) as writer:
            for number, pairs in enumerate(corpora):
                for chunk in chunked(pairs, CHUNK):
                    digest.update("".join(f"{pair.source}\t{pair.target}\n" for pair in chunk).encode())
                    writer.ragged("source", [as_bytes(pair.source) for pair in chunk])
                    writer.ragged("target", [as_bytes(pair.target) for pair in chunk])
                    writer.plain("lines", np.asarray([pair.line for pair in chunk], "<i8"))
                    writer.plain("corpora", np.full(len(chunk), number, "<u1"))
            writer.index |= {"details": dict(details()), "sha256": digest.hexdigest()}
        return cls(folder)


class Lines(Sequence[str]):
    """A sequence of texts of one side, read from disk on access."""

    def __init__(self, store: TextStore, side: int, rows: range) -> None:
        self.store = store
        self.side = side
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Lines(self.store, self.side, self.rows[index])
        return self.store.text(self.side, [self.rows[index]])[0]


def chunked(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of the given size; the last one may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def as_bytes(text: str) -> NDArray[np.uint8]:
    """Return the UTF-8 bytes of a text as an array."""
    return np.frombuffer(text.encode(), dtype="<u1")
