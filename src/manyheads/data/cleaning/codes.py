"""The letters of many lines as one array of code points, and hashed n-grams of them.

Shapes: N lines, M characters of all lines, G n-grams of all lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodedLines", "coded", "ngrams"]

BLANK = 32
PRIME, MIX = np.uint32(16_777_619), np.uint32(0x85EB_CA6B)


class LetterTable(dict[int, int]):
    """A table for `str.translate` that keeps letters with their marks and line ends; all else becomes a blank."""

    def __missing__(self, code: int) -> int:
        self[code] = code if code == 10 or unicodedata.category(chr(code))[0] in "LM" else BLANK
        return self[code]


LETTERS = LetterTable()


@dataclass(frozen=True)
class CodedLines:
    """Lines in lower case with one blank between words.

    Attributes:
        texts: the lines (N).
        codes: the code points of all lines, a blank before and after each (M,).
        owners: index of the line of each character (M,); the blank between two lines belongs to the first.
    """

    texts: list[str]
    codes: NDArray[np.uint32]
    owners: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)


def coded(texts: Sequence[str]) -> CodedLines:
    """Return the letters of lines that have no line end inside."""
    lines = "\n".join(texts).lower().translate(LETTERS).split("\n") if texts else []
    lines = [" ".join(line.split()) for line in lines]
    codes = np.frombuffer(" ".join(["", *lines, ""]).encode("utf-32-le", "surrogatepass"), "<u4")
    owners = np.repeat(np.arange(len(lines)), [len(line) + 1 for line in lines])
    return CodedLines(lines, codes[: len(owners) + 1], np.concatenate([owners[:1], owners]))


def ngrams(lines: CodedLines, orders: Sequence[int], buckets: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the hash, below `buckets`, and the line of each n-gram (G,); a blank marks both ends of a line."""
    codes, owners = lines.codes, lines.owners
    hashes, lasts = [], []
    running = np.zeros(len(codes), np.uint32)
    for order in range(1, max(orders) + 1):
        running = (running[: len(codes) - order + 1] ^ codes[order - 1 :]) * PRIME
        if order not in orders:
            continue
        mixed = (running ^ (running >> np.uint32(15))) * MIX
        last = owners[order - 1 :]
        inside = owners[1 : len(running) + 1] == last if order > 1 else np.ones(len(running), np.bool_)
        hashes.append((mixed ^ (mixed >> np.uint32(13)))[inside] % np.uint32(buckets))
        lasts.append(last[inside])
    return np.concatenate(hashes).astype(np.int64), np.concatenate(lasts)
