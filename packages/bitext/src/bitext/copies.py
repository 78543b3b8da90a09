"""Find the pairs of a corpus that are copies of each other, with memory for a few hashes of each pair.

Two sentences are equal if they have the same letters: case, punctuation, white space and digits do not count.

Two pairs are near copies if their MinHash signatures agree (Broder 1997). A band of a signature holds the smallest
hashes of the runs of `_RUN` letters of a pair, by `_ROWS` hash functions; one of `_BANDS` bands must be equal.
Pairs with the Jaccard similarity J of their runs share a band with the probability 1 - (1 - J**4)**4: 0.99 at
J = 0.9, 0.88 at 0.8, 0.23 at 0.5, 0.03 at 0.3. One changed word in a sentence of fifteen leaves J near 0.8.

Shapes: N pairs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bitext.filtering import digest
from bitext.letters import are_letters, code_points, text_of

_RUN = 5  # letters
_BANDS, _ROWS = 4, 4
_SEEDS = np.random.default_rng(20_261_123).integers(2**32, size=(2, _BANDS * _ROWS), dtype=np.uint32)
_PRIME, _MIX = np.uint32(16_777_619), np.uint32(0x85EB_CA6B)
_JOIN = np.uint64(0x9E37_79B9_7F4A_7C15)


def _fold(texts: Sequence[str]) -> list[str]:
    """Return the letters of texts without line ends, case folded; a text without letters is only stripped."""
    codes = code_points(unicodedata.normalize("NFKC", "\n".join(texts)).casefold())
    letters = text_of(codes[are_letters(codes) | (codes == ord("\n"))]).split("\n")
    return [folded or text.strip() for folded, text in zip(letters, texts, strict=True)]


class CopyKeys:
    """Keys of pairs, 16 bytes each, or 48 with near copies; two pairs with an equal key are copies."""

    def __init__(self, *, near: bool = True) -> None:
        """Begin without pairs; unless `near`, only equal sources and equal targets share a key."""
        self.near = near
        self.columns = [bytearray() for _ in range(2 + _BANDS * near)]

    def add(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Add pairs with text on both sides and without line ends."""
        if not sources:
            return
        sides = _fold(sources), _fold(targets)
        for column, texts in zip(self.columns, sides, strict=False):
            column.extend(np.asarray([digest(text) for text in texts], np.uint64).tobytes())
        if self.near:
            joined = [f"{source}\0{target}" for source, target in zip(*sides, strict=True)]
            for column, keys in zip(self.columns[2:], _signatures(joined), strict=True):
                column.extend(keys.tobytes())

    def arrays(self) -> list[NDArray[np.uint64]]:
        """Return the columns of keys, each (N,): of the source, of the target, and of near copies."""
        return [np.frombuffer(column, np.uint64) for column in self.columns]


def _signatures(texts: Sequence[str]) -> list[NDArray[np.uint64]]:
    """Return the `_BANDS` bands of texts, each (N,)."""
    margin = "\0" * (_RUN - 1)  # before each text, so that no run reaches from one text into the next
    codes = np.frombuffer("".join([*(margin + text for text in texts), margin]).encode("utf-32-le"), "<u4")
    starts = np.cumsum([0, *(len(text) + _RUN - 1 for text in texts[:-1])])
    runs = np.zeros(len(codes) - _RUN + 1, np.uint32)
    for offset in range(_RUN):
        runs = (runs ^ codes[offset : len(runs) + offset]) * _PRIME
    runs = (runs ^ (runs >> np.uint32(15))) * _MIX
    runs ^= runs >> np.uint32(13)
    bands = []
    for band in range(_BANDS):
        key = np.zeros(len(texts), np.uint64)
        for mask, factor in _SEEDS[:, band * _ROWS : (band + 1) * _ROWS].T:
            key = (key ^ np.minimum.reduceat((runs ^ mask) * (factor | np.uint32(1)), starts)) * _JOIN
            key ^= key >> np.uint64(29)
        bands.append(key)
    return bands


def first_of_each(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether each value is the first of equal values (N,)."""
    first = np.zeros(len(values), np.bool_)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def connected_components(columns: Iterable[NDArray[np.uint64]], size: int) -> NDArray[np.int64]:
    """Return the group of each of `size` items (N,), named by its first item: the connected components.

    Two items are connected if they have an equal value in a column.
    """
    edges = [_equal_neighbours(column) for column in columns]
    first, second = (np.concatenate([edge[side] for edge in edges]) for side in (0, 1))
    groups = np.arange(size)
    while True:
        ends = groups[first], groups[second]
        if np.array_equal(*ends):
            return groups
        smaller = np.minimum(*ends)
        for end in ends:
            np.minimum.at(groups, end, smaller)
        while not np.array_equal(groups, shorter := groups[groups]):
            groups = shorter


def _equal_neighbours(column: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return pairs of indices of equal values, enough to connect all equal values."""
    order = np.argsort(column, kind="stable").astype(np.int32)
    equal = np.flatnonzero(column[order[1:]] == column[order[:-1]])
    return order[equal], order[equal + 1]
