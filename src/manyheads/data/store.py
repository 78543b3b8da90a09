"""Store token ids in memory-mapped arrays: a corpus is tokenised once, and may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyheads.data.ragged import StoredFolder, written_folder
from manyheads.data.texts import SIDES, TextStore, chunked

__all__ = ["Encode", "TokenStore"]

Encode = Callable[[Sequence[str]], list[list[int]]]

CHUNK = 16_384  # pairs tokenised in one call: enough for all processors


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
        self.source, self.target = (self.ragged(side, "<i4") for side in SIDES)
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
        """Tokenise a text store into a folder; an existing folder is replaced.

        Args:
            folder: folder to write; its parent must exist.
            texts: normalised text.
            encode: two functions from text to ids, for the source and the target.
            key: key for `has`.
            max_length: maximum number of tokens a side, without begin and end symbols; longer pairs are left out.
        """
        with written_folder(folder, key, plain=["rows"], ragged=SIDES) as writer:
            too_long = 0
            for rows in chunked(range(len(texts)), CHUNK):
                sides = [arrays(encode[side](texts.text(side, rows))) for side in (0, 1)]
                longest = [max(len(source), len(target)) for source, target in zip(*sides, strict=True)]
                kept = [i for i, length in enumerate(longest) if max_length is None or length <= max_length]
                too_long += len(rows) - len(kept)
                for name, ids in zip(SIDES, sides, strict=True):
                    writer.ragged(name, [ids[i] for i in kept])
                writer.plain("rows", np.asarray([rows[i] for i in kept], "<i8"))
            writer.index["too_long"] = too_long
        return cls(folder)


def arrays(rows: list[list[int]]) -> list[NDArray[np.int32]]:
    """Convert rows of ids to arrays."""
    return [np.asarray(row, "<i4") for row in rows]
