"""Held-out pairs are chosen at random from their keys: sizes, undivided groups and undivided documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bitext.errors import DataError
from bitext.held_out import REPEATED, TEST, TRAIN, VALID, PairKeys, checked_sizes, choose

SIZES = {VALID: 7, TEST: 5}


def choose_splits(
    groups: Sequence[int], *, documents: Sequence[int] | None = None, seed: int = 1, same: bool = False
) -> NDArray[np.uint8]:
    """Return the split of each pair of these groups; the texts all differ, or are equal within a group (`same`)."""
    number = np.asarray(groups, np.int64)
    column = (number if same else np.arange(len(groups))).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = PairKeys(
        [column, column + np.uint64(1)],
        bytearray([1] * len(groups)),
        None if documents is None else np.asarray(documents, np.uint64),
    )
    return choose(number, keys, SIZES, np.random.default_rng(seed))


def test_as_many_pairs_as_wanted_are_held_out_and_another_seed_holds_out_others() -> None:
    first, again, other = (choose_splits(range(101), seed=seed) for seed in (1, 1, 2))
    for splits in (first, other):
        assert np.bincount(splits).tolist() == [101 - 12, 7, 5]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_group_above_a_tenth_of_a_split_stays_in_train_and_no_group_is_divided() -> None:
    groups = [0] * 31 + [*range(31, 131)]
    assert set(choose_splits(groups)[:31].tolist()) == {TRAIN}


def test_one_pair_of_a_repeated_held_out_text_is_written() -> None:
    splits = choose_splits([number // 3 for number in range(303)], same=True)
    for group in splits.reshape(-1, 3).tolist():
        assert group[0] == TRAIN or group[1:] == [REPEATED, REPEATED]
        assert group[0] != TRAIN or group == [TRAIN] * 3


def test_documents_are_not_divided_and_a_pair_of_two_documents_is_written_to_train_only() -> None:
    documents = [number // 2 for number in range(202)]
    groups = [*range(202)]
    groups[2] = 0  # the first pair of the second document is a copy of the first pair of the first
    for seed in range(11):
        splits = choose_splits(groups, documents=documents, seed=seed)
        for pair, owner in enumerate(splits.tolist()):
            if pair in (0, 2):
                assert owner in (TRAIN, REPEATED)
            else:
                other = splits[pair ^ 1]
                assert owner == other or REPEATED in (owner, other)


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
