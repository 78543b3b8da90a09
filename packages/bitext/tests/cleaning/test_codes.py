"""Lines are encoded as letters, and no n-gram spans two lines."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.codes import encode_lines, ngrams

BUCKETS = 1 << 20


def valid_hashes(hashes: NDArray[np.int64]) -> list[int]:
    """Return the sorted hashes of the n-grams; a hash of BUCKETS marks no n-gram."""
    return sorted(hashes[hashes < BUCKETS].tolist())


def test_runs_of_other_characters_than_letters_become_one_blank() -> None:
    assert encode_lines(["Ein  Hund, 3 Katzen!", "", "ÄÖ"]).texts == ["ein hund katzen", "", "äö"]


def test_a_batch_of_lines_is_encoded_as_a_loop_over_letters_does() -> None:
    rng = random.Random(1)
    letters = "aB  ßÄ.,1-\u0301Σσ\u00a0\u2028\x85한\U0001d7d9\U00010400\U0001f600İ½"
    lines = ["".join(rng.choices(letters, k=rng.randrange(9))) for _ in range(997)]
    together = encode_lines(lines)
    for index, line in enumerate(lines):
        kept = "".join(s if unicodedata.category(s)[0] in "LM" else " " for s in line.lower())
        assert together.texts[index] == " ".join(kept.split()), line
    codes, owners = "".join(f" {text}" for text in together.texts) + " ", together.owners.tolist()
    assert together.codes.tolist() == list(map(ord, codes))
    assert owners == [0, *(index for index, text in enumerate(together.texts) for _ in f"{text} ")]
    assert together.sums(together.codes > 0).tolist() == np.bincount(owners).tolist()


def test_the_ngrams_of_a_line_do_not_depend_on_its_neighbours() -> None:
    lines = ["ein hund", "", "a", "der rote hut", "빨간 모자"]
    together = encode_lines(lines)
    hashes = ngrams(together, (2, 3, 4), BUCKETS)
    for index, line in enumerate(lines):
        alone = valid_hashes(ngrams(encode_lines([line]), (2, 3, 4), BUCKETS))
        assert valid_hashes(hashes[:, together.owners == index]) == alone
        padded = f" {line} "
        windows = sum(max(0, len(padded) - order + 1) for order in (2, 3, 4)) if line else 0
        assert len(alone) == windows or not line
