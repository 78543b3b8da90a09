"""Sizes of held-out splits, and what cannot be held out; test_split.py has whole texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bitext.errors import DataError
from bitext.held_out import TEST, TRAIN, VALID, PairKeys, checked_sizes, choose

SIZES = {VALID: 7, TEST: 5}


def choose_splits(groups: Sequence[int]) -> NDArray[np.uint8]:
    """Return the split of each pair of these groups; all texts differ."""
    column = np.arange(len(groups), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = PairKeys([column, column + np.uint64(1)], bytearray([1] * len(groups)), None)
    return choose(np.asarray(groups, np.int64), keys, SIZES, np.random.default_rng(1))


def test_a_group_above_a_tenth_of_a_split_stays_in_train_and_no_group_is_divided() -> None:
    groups = [0] * 31 + [*range(31, 131)]
    assert set(choose_splits(groups)[:31].tolist()) == {TRAIN}


def test_pairs_of_a_single_group_cannot_be_split() -> None:
    with pytest.raises(DataError, match=r"test: 5 pairs are wanted, and only 0 of 31 can be held out.*31 pairs"):
        choose_splits([0] * 31)


def test_the_default_size_is_a_twentieth_and_at_most_two_thousand() -> None:
    for pairs, size in ((3, 1), (100, 5), (1_000_000, 2_000)):
        assert checked_sizes(pairs, None, None) == {VALID: size, TEST: size}
    assert checked_sizes(100, 31, 0) == {VALID: 31, TEST: 0}


@pytest.mark.parametrize(
    ("pairs", "size", "message"),
    [(2, None, "There are 2 pairs"), (100, 40, "less than half of 100 pairs for train")],
)
def test_sizes_that_leave_too_little_for_train_are_an_error(pairs: int, size: int | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        checked_sizes(pairs, size, size)
