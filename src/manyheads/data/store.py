"""Store the text of a training corpus and its token ids in memory-mapped files, which may be larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitext.pairs import Pair, chunks
from manyheads.data.ragged import StoredFolder, written_folder
from manyheads.text.interface import Encode

_WRITTEN = 4_096  # pairs written at once
_TOKENISED = 16_384  # texts tokenised in one call: enough for all processors
_SIDES = ("source", "target")


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
        self.texts = tuple(self.ragged(side, "<u1") for side in _SIDES)
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
        """Return sources and targets as sequences, at most `most` evenly spaced pairs."""
        step = 1 if most is None else max(1, -(-len(self) // most))
        return Lines(self, 0, range(0, len(self), step)), Lines(self, 1, range(0, len(self), step))

    @classmethod
    def build(
        cls, folder: Path, corpora: Iterable[Iterable[Pair]], *, key: str, details: Callable[[], Mapping[str, Any]]
    ) -> TextStore:
        """Write the kept, normalised pairs of each corpus into a folder; an existing folder is replaced.

        `details` is called after the last pair: its result is stored, and an exception ends the building.
        """
        digest = hashlib.sha256()
        with written_folder(folder, key, plain=("lines", "corpora"), ragged=_SIDES) as writer:
            for number, pairs in enumerate(corpora):
                for chunk in chunks(pairs, _WRITTEN):
                    digest.update("".join(f"{pair.source}\t{pair.target}\n" for pair in chunk).encode())
                    writer.ragged("source", [np.frombuffer(pair.source.encode(), "<u1") for pair in chunk])
                    writer.ragged("target", [np.frombuffer(pair.target.encode(), "<u1") for pair in chunk])
                    writer.plain("lines", np.asarray([pair.line for pair in chunk], "<i8"))
                    writer.plain("corpora", np.full(len(chunk), number, "<u1"))
            writer.index |= {"details": dict(details()), "sha256": digest.hexdigest()}
        return cls(folder)


class TokenStore(StoredFolder):
    """Token ids of the pairs of a text store that are not too long.

    Attributes:
        source, target: ids of each pair, without begin and end symbols.
        rows: row of each pair in the text store (N,).
        too_long: number of pairs left out because a side had more tokens than the limit.
    """

    def __init__(self, folder: Path) -> None:
        """Open a store that `build` wrote."""
        super().__init__(folder)
        self.too_long = int(self.index["too_long"])
        self.source, self.target = (self.ragged(side, "<i4") for side in _SIDES)
        self.rows = self.plain("rows", "<i8")

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def build(
        cls,
        folder: Path,
        texts: TextStore,
        encode: tuple[Encode, Encode],
        *,
        key: str,
        max_length: int | None = None,
    ) -> TokenStore:
        """Tokenise a text store into a folder, by a function of each side; an existing folder is replaced.

        Pairs with a side of more than `max_length` tokens, without begin and end symbols, are left out.
        """
        with written_folder(folder, key, plain=["rows"], ragged=_SIDES) as writer:
            too_long = 0
            for rows in chunks(range(len(texts)), _TOKENISED):
                sides = [
                    [np.asarray(row, "<i4") for row in encode[side](texts.text(side, rows))] for side in (0, 1)
                ]
                longest = [max(len(source), len(target)) for source, target in zip(*sides, strict=True)]
                indices = [i for i, length in enumerate(longest) if max_length is None or length <= max_length]
                too_long += len(rows) - len(indices)
                for name, ids in zip(_SIDES, sides, strict=True):
                    writer.ragged(name, [ids[i] for i in indices])
                writer.plain("rows", np.asarray([rows[i] for i in indices], "<i8"))
            writer.index["too_long"] = too_long
        return cls(folder)


class TokenStream(StoredFolder):
    """Token ids of all documents, an end symbol after each.

    Attributes:
        tokens: (N,) int32.
    """

    def __init__(self, folder: Path) -> None:
        """Open a stream that `build` wrote."""
        super().__init__(folder)
        self.tokens = self.plain("tokens", "<i4")

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def build(
        cls,
        folder: Path,
        texts: TextStore,
        encode: Encode,
        *,
        key: str,
        end: int,
        whole_files: bool,
    ) -> TokenStream:
        """Tokenise the targets of a text store into a folder; an existing folder is replaced.

        The symbol `end` follows each text or, with `whole_files`, all text of a corpus.
        """
        corpora = texts.corpora
        with written_folder(folder, key, plain=["tokens"]) as writer:
            for rows in chunks(range(len(texts)), _TOKENISED):
                tokens: list[int] = []
                for row, ids in zip(rows, encode(texts.text(1, rows)), strict=True):
                    tokens += ids
                    if not whole_files or row + 1 == len(texts) or corpora[row + 1] != corpora[row]:
                        tokens.append(end)
                writer.plain("tokens", np.asarray(tokens, "<i4"))
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
