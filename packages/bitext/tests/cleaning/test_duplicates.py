"""Copies and near copies of an earlier pair are found; the first pair stays."""

from __future__ import annotations

import numpy as np
import pytest

from bitext.cleaning.duplicates import KEYS, copy_keys, find_boilerplate, find_duplicates

LONG = (
    "In einem kleinen Dorf am Fluss lebte vor vielen Jahren ein alter Mann mit seinen drei Söhnen und zwei Hunden."
)


def test_copies_and_near_copies_are_found_and_paraphrases_are_not() -> None:
    sources = ["Ein Hund.", "ein hund!", "Ein Hund.", LONG, LONG.replace(".", " !"), "Ein Kater."]
    targets = ["A dog.", "A dog", "One dog.", "In a small village.", "In a small village.", "A dog."]
    assert find_duplicates(copy_keys(sources, targets)).tolist() == [False, True, False, False, True, False]


def test_a_long_side_is_boilerplate_beyond_the_given_number_of_occurrences() -> None:
    sources = ["Alle Rechte sind hier vorbehalten"] * 5 + ["Ja"] * 5
    keys = copy_keys(sources, [f"right {letter}" for letter in "abcdefghij"])
    long = np.array([[len(source.split()) >= 4, False] for source in sources])
    assert find_boilerplate(keys, long, 3).tolist() == [False] * 3 + [True] * 2 + [False] * 5


@pytest.mark.parametrize(("bands", "copy"), [(4, True), (3, True), (2, False)])
def test_a_near_copy_shares_three_of_the_four_bands(bands: int, copy: bool) -> None:
    keys = np.arange(2 * KEYS, dtype=np.uint64).reshape(2, KEYS)
    keys[1, KEYS - bands :] = keys[0, KEYS - bands :]
    assert find_duplicates(keys).tolist() == [False, copy]
