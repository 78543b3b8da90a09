"""Find repeated pairs and boilerplate among the pairs that passed the rules, by the keys of `bitext.copies`.

Shapes: N pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bitext.copies import CopyKeys, first_of_each

KEYS = 6  # keys of a pair: source, target, four bands of the MinHash signature
_AGREEING = 3  # bands shared by near copies: probability 0.55 if 0.9 of the runs of letters are equal, 0.2 if 0.8
_JOIN = np.uint64(0x9E37_79B9_7F4A_7C15)

Keys = NDArray[np.uint64]


def copy_keys(sources: Sequence[str], targets: Sequence[str]) -> Keys:
    """Return the keys of pairs (N, KEYS)."""
    keys = CopyKeys()
    keys.add([source or " " for source in sources], [target or " " for target in targets])
    return np.stack(keys.arrays(), 1) if sources else np.zeros((0, KEYS), np.uint64)


def find_duplicates(keys: Keys) -> NDArray[np.bool_]:
    """Return whether each pair is a copy or near copy of an earlier one: keys (N, KEYS) -> (N,)."""
    copies = _came_before(_join_keys(keys[:, :2]))
    for bands in itertools.combinations(range(2, KEYS), _AGREEING):
        copies |= _came_before(_join_keys(keys[:, bands]))
    return copies


def find_boilerplate(keys: Keys, long: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Return whether at least `most` earlier pairs have the source or target of each pair: keys (N, KEYS) -> (N,).

    Only sides that are `long`, of four words or more (N, 2), count.
    """
    return (_rank(keys[:, 0], long[:, 0]) >= most) | (_rank(keys[:, 1], long[:, 1]) >= most)


def _join_keys(columns: Keys) -> Keys:
    """Combine the keys of each row to one key: (N, K) -> (N,)."""
    key = np.zeros(len(columns), np.uint64)
    for column in columns.T:
        key = (key ^ column) * _JOIN
        key ^= key >> np.uint64(29)
    return key


def _came_before(keys: Keys) -> NDArray[np.bool_]:
    """Return whether each key occurs earlier, too (N,)."""
    return ~first_of_each(keys)


def _rank(keys: Keys, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of earlier items with the key of each item (N,); 0 for items that are not counted."""
    ranks = np.zeros(len(keys), np.int64)
    items = np.flatnonzero(counted)
    order = items[np.argsort(keys[items], kind="stable")]
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order][:1] + np.uint64(1)) != 0)
    sizes = np.diff(starts, append=len(order))
    ranks[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return ranks
