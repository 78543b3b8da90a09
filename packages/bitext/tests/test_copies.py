"""Pairs that are copies of each other, compared with definitions that are computed exhaustively."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from bitext.copies import _RUN, CopyKeys, _fold, connected_components

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["der", "hund", "läuft", "durch", "den", "tiefen", "schnee", "und", "bellt", "laut"]


def keys_of(pairs: Sequence[tuple[str, str]], *, near: bool = True) -> list[np.ndarray]:
    keys = CopyKeys(near=near)
    keys.add([source for source, _ in pairs], [target for _, target in pairs])
    return keys.arrays()


def share_a_key(pairs: Sequence[tuple[str, str]], *, near: bool = True) -> bool:
    return any(column[0] == column[1] for column in keys_of(pairs, near=near))


@pytest.mark.parametrize(
    "other",
    [
        "Ein Hund, 3 Katzen!",
        "EIN  HUND 17 KATZEN",
        "ein hund katzen",
        "Ｅｉｎ Hund «Katzen»",
        "ein\tHund\u00a0Katzen…",
    ],
)
def test_case_punctuation_white_space_and_digits_do_not_count(other: str) -> None:
    assert _fold(["Ein Hund, 2 Katzen."]) == _fold([other])


def test_letters_and_combining_marks_distinguish_texts_in_every_script() -> None:
    texts = ["고양이가 잔다", "고양이가 난다", "किताब", "कताब", "Maße", "Mase", "名前", "名"]
    assert len(set(_fold(texts))) == len(texts)
    assert (
        _fold(["한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"])[0]
        == _fold(["\u1112\u1161\u11ab\u1100\u1173\u11af"])[0]
    )


def test_a_text_without_letters_is_only_stripped() -> None:
    assert _fold(["1984", " 1984 ", "1985", "?!"]) == ["1984", "1984", "1985", "?!"]


def test_a_pair_with_an_equal_source_or_an_equal_target_is_a_copy() -> None:
    for near in (True, False):
        assert share_a_key([("Guten Tag.", "Hello."), ("guten tag!", "Good day, my dear friend.")], near=near)
        assert share_a_key([("Guten Tag.", "Hello."), ("Sei gegrüßt, lieber Freund", "HELLO")], near=near)
        assert not share_a_key([("Hello.", "Guten Tag."), ("Guten Tag.", "Hello.")], near=near)


def character_ngrams(text: str) -> set[str]:
    padded = "\0" * (_RUN - 1) + text + "\0" * (_RUN - 1)
    return {padded[start : start + _RUN] for start in range(len(padded) - _RUN + 1)}


def test_signatures_agree_as_often_as_the_jaccard_index_of_character_ngrams_predicts() -> None:
    """The probability of an equal band is 1 - (1 - J ** 4) ** 4, by the definition of the Jaccard index J."""
    rng = random.Random(3)
    expected, found = [], []
    for _ in range(1_500):
        letters = [rng.choice("abcdefghijklmnop") for _ in range(120)]
        changed = list(letters)
        for _ in range(rng.randrange(1, 12)):
            changed[rng.randrange(len(changed))] = rng.choice("qrstuvwxyz")
        pairs = [("".join(text[:60]), "".join(text[60:])) for text in (letters, changed)]
        first, second = (character_ngrams("\0".join(pair)) for pair in pairs)
        expected.append(1 - (1 - (len(first & second) / len(first | second)) ** 4) ** 4)
        found.append(any(column[0] == column[1] for column in keys_of(pairs)[2:]))
    assert 0.2 < np.mean(expected) < 0.8, "the texts are neither all alike nor all different"
    assert abs(np.mean(found) - np.mean(expected)) < 0.05


def test_a_pair_with_two_changed_words_is_mostly_a_near_copy_and_an_unrelated_pair_is_not() -> None:
    rng = random.Random(1)
    near = unrelated = 0
    for _ in range(200):
        words, others = (
            ["".join(rng.choices(LETTERS, k=rng.randrange(4, 9))) for _ in range(30)] for _ in range(2)
        )
        changed = [*words[:7], "schnee", *words[8:22], "clouds", *words[23:]]
        pairs = [(" ".join(text[:15]), " ".join(text[15:])) for text in (words, changed, others)]
        near += share_a_key(pairs[:2])
        unrelated += share_a_key(pairs[::2])
    assert near > 150
    assert unrelated == 0


def test_keys_of_a_pair_do_not_depend_on_other_pairs() -> None:
    pairs = [(" ".join(WORDS[n:]), " ".join(reversed(WORDS[: n + 1]))) for n in range(len(WORDS))]
    together = keys_of(pairs)
    for row, pair in enumerate(pairs):
        assert [column[row] for column in together] == [column[0] for column in keys_of([pair])]


def test_groups_are_those_of_a_union_over_all_pairs_of_rows() -> None:
    rng = np.random.default_rng(5)
    for size, values in ((1, 3), (40, 60), (200, 150), (997, 700)):
        columns = [rng.integers(values, size=size).astype(np.uint64) for _ in range(3)]
        parent = list(range(size))

        def find(item: int, parent: list[int] = parent) -> int:
            while parent[item] != item:
                item = parent[item]
            return item

        for column in columns:
            for left, right in combinations(range(size), 2):
                if column[left] == column[right]:
                    first, second = sorted((find(left), find(right)))
                    parent[second] = first
        assert connected_components(columns, size).tolist() == [find(item) for item in range(size)]
