"""Lines become letters, and n-grams never reach from one line into the next."""

from __future__ import annotations

import numpy as np

from manyheads.data.cleaning.codes import coded, ngrams

BUCKETS = 1 << 20


def test_all_but_letters_becomes_one_blank() -> None:
    assert coded(["Ein  Hund, 3 Katzen!", "", "ÄÖ"]).texts == ["ein hund katzen", "", "äö"]


def test_the_ngrams_of_a_line_do_not_depend_on_its_neighbours() -> None:
    lines = ["ein hund", "", "a", "der rote hut", "빨간 모자"]
    hashes, owners = ngrams(coded(lines), (2, 3, 4), BUCKETS)
    for index, line in enumerate(lines):
        alone, _ = ngrams(coded([line]), (2, 3, 4), BUCKETS)
        assert sorted(hashes[owners == index]) == sorted(alone)
        padded = f" {line} "
        windows = sum(max(0, len(padded) - order + 1) for order in (2, 3, 4)) if line else 0
        assert len(alone) == windows or not line


def test_different_ngrams_have_different_hashes() -> None:
    hashes, _ = ngrams(coded(["abcdefghijklmnop"]), (3,), BUCKETS)
    assert len(np.unique(hashes)) == len(hashes) == 16
