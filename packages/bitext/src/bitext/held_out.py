"""Choose the pairs that are held out for valid and test: complete groups of copies or documents, at random.

`bitext.split` reads the text and writes the splits. Shapes: N pairs with text on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitext.copies import first_of_each
from bitext.errors import DataError

SPLITS = ("train", "valid", "test")
TRAIN, VALID, TEST, REPEATED, EMPTY = range(5)  # destinations of a pair; the last two are not written
_LEAST_PAIRS = 3  # one for each split
_DEFAULT_SHARE, _MAX_PAIRS = 0.05, 2_000  # default share of pairs, and most pairs, for valid and for test
_LARGEST_GROUP = 0.1  # share of a held-out split; larger groups of copies remain in train
_OVERSHOOT = 0.5  # share by which a held-out split may become larger, because documents are not divided


@dataclass(frozen=True)
class PairKeys:
    """The keys and the documents of the pairs of a text.

    Attributes:
        columns: keys of the pairs with text on both sides, each (N,).
        complete: for each pair a byte: 1 if it has text on both sides, otherwise 0.
        documents: number of the document of each complete pair (N,); None if documents are not known.
        replaced: number of bytes replaced by U+FFFD.
    """

    columns: list[NDArray[np.uint64]]
    complete: bytearray
    documents: NDArray[np.uint64] | None
    replaced: int = 0


def checked_sizes(pairs: int, valid: int | None, test: int | None) -> dict[int, int]:
    """Return the number of pairs for valid and test; None is the default.

    Raises:
        DataError: less than half of the pairs would be left for train.
    """
    default = max(1, min(_MAX_PAIRS, int(_DEFAULT_SHARE * pairs)))
    valid, test = (default if size is None else size for size in (valid, test))
    if pairs < _LEAST_PAIRS:
        raise DataError(f"There are {pairs} pairs with text on both sides; at least {_LEAST_PAIRS} can be divided.")
    if 2 * (valid + test) > pairs and (valid, test) != (default, default):
        raise DataError(
            f"valid = {valid:,} and test = {test:,} would leave less than half of {pairs:,} pairs for train. "
            f"Ask for fewer, such as --valid {default} --test {default}."
        )
    return {VALID: valid, TEST: test}


def choose(
    groups: NDArray[np.int64], keys: PairKeys, sizes: dict[int, int], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return the destination of each pair (N,): undivided groups of copies, or documents, drawn at random.

    A unit (group or document) is drawn in proportion to its pairs. Pairs with a copy in another document are
    written to train only, as are all groups above `_LARGEST_GROUP`.
    """
    size = len(groups)
    source, target = keys.columns[:2]
    held = first_of_each(source ^ (target * np.uint64(3)))  # whether a pair may be in a held-out split
    units = groups
    if keys.documents is not None:
        units = np.unique(keys.documents, return_inverse=True)[1]
        lowest, highest = np.full(size, size), np.full(size, -1)
        np.minimum.at(lowest, groups, units)
        np.maximum.at(highest, groups, units)
        held &= (lowest == highest)[groups]
    usable = np.bincount(units[held], minlength=size)
    owner = np.zeros(size, np.uint8)
    order = units[rng.permutation(size)].tolist()
    for split in (TEST, VALID):
        target_size, count = sizes[split], 0
        largest = target_size if keys.documents is not None else max(1, int(_LARGEST_GROUP * target_size))
        overshoot = int(_OVERSHOOT * target_size) if keys.documents is not None else 0
        for unit in order if target_size else ():
            if owner[unit] == TRAIN and 0 < usable[unit] <= min(
                largest + overshoot, target_size + overshoot - count
            ):
                owner[unit] = split
                count += int(usable[unit])
                if count >= target_size:
                    break
        if 2 * count < target_size:
            raise _too_connected(SPLITS[split], target_size, count, groups, keys)
    destinations = owner[units]
    destinations[(destinations != TRAIN) & ~held] = REPEATED
    return destinations


def _too_connected(
    split: str, target_size: int, count: int, groups: NDArray[np.int64], keys: PairKeys
) -> DataError:
    largest = int(np.bincount(groups).max())
    what = "documents" if keys.documents is not None else "groups of copies"
    near = " or separate equal sentences only (--equal-only)" if len(keys.columns) > 2 else ""
    return DataError(
        f"{split}: {target_size:,} pairs are wanted, and only {count:,} of {len(groups):,} can be held out. "
        f"The others are in {what} that are too large (the largest group of copies has {largest:,} pairs). "
        f"Ask for fewer (--{split} {max(1, count)}){near}."
    )
