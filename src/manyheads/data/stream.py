"""The tokens of all documents of a text store, end to end in one memory-mapped array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from manyheads.data.ragged import open_plain, read_index, written_folder
from manyheads.data.texts import TextStore, chunked

__all__ = ["TokenStream"]

CHUNK = 16_384  # texts tokenised in one call: enough for all processors


class TokenStream:
    """Token ids, an end mark after each document.

    Attributes:
        tokens: (N,) int32.
    """

    def __init__(self, folder: Path) -> None:
        """Open a stream that `build` wrote."""
        self.tokens = open_plain(folder, "tokens", "<i4")

    def __len__(self) -> int:
        return len(self.tokens)

    @staticmethod
    def has(folder: Path, key: str) -> bool:
        """Whether the folder holds a whole stream of this key (a hash of all that went into it)."""
        return read_index(folder, key) is not None

    @classmethod
    def build(
        cls,
        folder: Path,
        texts: TextStore,
        encode: Callable[[Sequence[str]], list[list[int]]],
        *,
        key: str,
        end: int,
        whole_files: bool,
    ) -> TokenStream:
        """Tokenise the targets of a text store into a folder, which is replaced when it exists.

        Args:
            folder: where to; its parent must exist.
            texts: the text.
            encode: text to ids.
            key: what `has` asks for later.
            end: the end mark.
            whole_files: a document is all the text of a corpus; else each text is one.
        """
        corpora = texts.corpora
        with written_folder(folder, key) as (writer, _):
            writer.plain("tokens", np.zeros(0, "<i4"))
            for rows in chunked(range(len(texts)), CHUNK):
                tokens: list[int] = []
                for row, ids in zip(rows, encode(texts.text(1, rows)), strict=True):
                    tokens += ids
                    if not whole_files or row + 1 == len(texts) or corpora[row + 1] != corpora[row]:
                        tokens.append(end)
                writer.plain("tokens", np.asarray(tokens, "<i4"))
        return cls(folder)
