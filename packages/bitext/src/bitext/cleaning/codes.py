"""Store the letters of many lines as one array of code points, and hash their n-grams.

Shapes: N lines, M characters of all lines, O orders of n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.letters import are_letters, code_points, text_of

_BLANK, _LINE_END = 32, 10
_PRIME, _MIX = np.uint32(16_777_619), np.uint32(0x85EB_CA6B)


@dataclass(frozen=True)
class CodedLines:
    """Lines in lower case with one blank between words.

    Attributes:
        codes: the code points of all lines, a blank before and after each (M,).
        ends: index of the blank after each line (N,).
    """

    codes: NDArray[np.uint32]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Index of the line of each character (M,); the blank between two lines belongs to the first."""
        return np.repeat(np.arange(len(self)), np.diff(self.ends, prepend=-1))

    def sums(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the sum of the integers of the characters of each line: (M,) -> (N,)."""
        starts = np.concatenate([np.zeros(1, np.int64), self.ends + 1])[:-1]
        return np.add.reduceat(values, starts, dtype=np.int64)

    @cached_property
    def texts(self) -> list[str]:
        """The lines (N)."""
        codes = self.codes.copy()
        codes[self.ends] = _LINE_END
        return text_of(codes[1:]).split("\n")[:-1]


def encode_lines(texts: Sequence[str]) -> CodedLines:
    """Return the letters of lines that have no line end inside."""
    codes = code_points("\n".join(["", *texts, ""]).lower())
    letters, ended = are_letters(codes), codes == _LINE_END
    # The first of the other characters between two words of a line becomes a blank.
    kept = letters | ended
    after = np.flatnonzero(kept)
    words = letters[after[:-1]] & letters[after[1:]] & (np.diff(after) > 1)
    kept[after[:-1][words] + 1] = True
    codes = np.where(letters, codes, np.uint32(_BLANK))[kept]
    return CodedLines(codes, np.flatnonzero(ended[kept])[1:])


def ngrams(lines: CodedLines, orders: Sequence[int], buckets: int) -> NDArray[np.int64]:
    """Return the hash, below `buckets`, of the n-gram of each order that ends at each character (O, M).

    A blank marks both ends of a line. Where an n-gram would reach into another line, the hash is `buckets`.
    """
    codes, owners = lines.codes, lines.owners
    hashes = np.full((len(orders), len(codes)), buckets)
    running = np.zeros(len(codes), np.uint32)
    for order in range(1, max(orders) + 1):
        running = (running[: len(codes) - order + 1] ^ codes[order - 1 :]) * _PRIME
        if order not in orders:
            continue
        mixed = (running ^ (running >> np.uint32(15))) * _MIX
        inside = owners[1 : len(running) + 1] == owners[order - 1 :] if order > 1 else True
        mixed = (mixed ^ (mixed >> np.uint32(13))) % np.uint32(buckets)
        hashes[orders.index(order), order - 1 :] = np.where(inside, mixed, buckets)
    return hashes
