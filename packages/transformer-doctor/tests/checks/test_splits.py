"""Copies and near copies of test data in the training data, and splits that change, are named."""

from __future__ import annotations

import random
from collections.abc import Callable

from transformer_doctor import examine_split, examine_split_function

CORPUS = [(f"satz nummer {'abc'[i % 3]} von {'defghij'[i % 7]}", f"sentence {'klmno'[i % 5]}") for i in range(60)]


def test_copies_and_near_copies_of_test_data_are_found() -> None:
    fresh = [("ein ganz anderer text hier", "quite another text here")]
    assert not examine_split(CORPUS, fresh).findings
    assert examine_split(CORPUS, CORPUS[:5]).names == ["tested-on-training-data"]
    near = [(source.upper() + "!", target + " 7") for source, target in CORPUS[:5]]
    report = examine_split(CORPUS, near)
    assert report.names == ["tested-on-training-data"]
    assert "near copies of 5 more" in report.findings[0].evidence
    assert not examine_split(["one two three"], ["one two four"]).findings
    assert examine_split(["one two three four"], ["one two five four"]).names == ["tested-on-training-data"]


def test_texts_without_words_are_compared_as_they_are() -> None:
    sums = [(f"{i} + {i * i % 97}", f"{i + i * i % 97}") for i in range(60)]
    assert not examine_split(sums[9:], sums[:9]).findings
    assert examine_split(sums, sums[:9]).names == ["tested-on-training-data"]


def test_a_single_copy_in_a_large_test_set_is_a_note() -> None:
    test = [f"{'abcdefgh'[i % 8]} {'ijklmno'[i % 7]} {'pqrstuvwxyz'[i % 11]}" for i in range(99)]
    report = examine_split(["x", test[0]], test)
    assert report.ok
    assert report.names == ["tested-on-training-data"]


def test_a_split_that_changes_is_named() -> None:
    lines = [chr(97 + i) * 9 for i in range(26)]

    def split(order: random.Random) -> tuple[list[str], list[str]]:
        mixed = order.sample(lines, 26)
        return mixed[13:], mixed[:13]

    unseeded = random.Random(1)
    assert examine_split_function(lambda: split(unseeded)).names == ["unseeded-split"]
    assert not examine_split_function(lambda: split(random.Random(1))).findings


def test_a_split_that_differs_between_processes_is_named() -> None:
    texts = [f"text {letter * 3}" for letter in "abcdefghijklmnopqrstuvwxyz"]

    def by_hash() -> tuple[list[str], list[str]]:
        return [text for text in texts if hash(text) % 3], [text for text in texts if hash(text) % 3 == 0]

    def by_set(order: Callable[[set[str]], list[str]]) -> tuple[list[str], list[str]]:
        mixed = order(set(texts))
        random.Random(0).shuffle(mixed)
        return mixed[9:], mixed[:9]

    assert "unseeded-split" in examine_split_function(by_hash).names
    assert "unseeded-split" in examine_split_function(lambda: by_set(list)).names
    assert "unseeded-split" not in examine_split_function(lambda: by_set(sorted)).names
