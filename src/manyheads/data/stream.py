"""Store the tokens of all documents, one after another, in one memory-mapped array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from manyheads.data.ragged import StoredFolder, written_folder
from manyheads.data.texts import TextStore, chunked

__all__ = ["TokenStream"]

CHUNK = 16_384  # texts tokenised in one call: enough for all processors


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
        encode: Callable[[Sequence[str]], list[list[int]]],
        *,
        key: str,
        end: int,
        whole_files: bool,
    ) -> TokenStream:
        """Tokenise the targets of a text store into a folder; an existing folder is replaced.

        Args:
            folder: folder to write; its parent must exist.
            texts: store of the text.
            encode: function from text to ids.
            key: key for `has`.
            end: id of the end symbol.
            whole_files: whether all text of a corpus is one document; else each text is one.
        """
        corpora = texts.corpora
        with written_folder(folder, key, plain=["tokens"]) as writer:
            for rows in chunked(range(len(texts)), CHUNK):
                tokens: list[int] = []
                for row, ids in zip(rows, encode(texts.text(1, rows)), strict=True):
                    tokens += ids
                    if not whole_files or row + 1 == len(texts) or corpora[row + 1] != corpora[row]:
                        tokens.append(end)
                writer.plain("tokens", np.asarray(tokens, "<i4"))
        return cls(folder)
