"""Outputs with a defect are found, and sound outputs are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.evaluation.outputs import DEFECTS, Output, OutputDefect, find_defects, length_ratio

SOUND = Output(1, "ein großer Hund rennt heute", "a big dog runs today", "a large dog is running today", True)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"ended": False}, "never-ends"),
        ({"text": " "}, "nothing-said"),
        ({"text": "a dog a dog a dog a dog a dog"}, "repeats-itself"),
        ({"text": "Ein großer Hund rennt heute."}, "copies-its-source"),
        (
            {"text": "ab cd ef gh ij kl mn op qr st uv wx yz ba dc fe hg ji lk on qp sr ut wv yx az cb"},
            "far-too-long",
        ),
        ({"text": "dog", "reference": "r" * 27}, "far-too-short"),
    ],
)
def test_each_defect_is_found_and_no_other(changes: dict[str, str], name: str) -> None:
    broken = replace(SOUND, line=3, **changes)
    assert [each for each, has_defect in DEFECTS.items() if has_defect(broken)] == [name]
    assert list(find_defects([SOUND, replace(SOUND, line=2), broken])) == [OutputDefect(name, 1, 3)]


def test_a_length_is_odd_above_twice_the_reference_plus_twenty_characters() -> None:
    for text, other, odd in (("a" * 60, "b" * 20, False), ("a" * 61, "b" * 20, True)):
        longer = Output(1, "s", other, text, True)
        shorter = Output(1, "s", text, other, True)
        assert DEFECTS["far-too-long"](longer) is odd
        assert DEFECTS["far-too-short"](shorter) is odd
        assert not DEFECTS["far-too-short"](longer)


def test_the_output_of_an_empty_line_has_no_defect() -> None:
    assert list(find_defects([Output(1, "", "a long reference that is not in the text", "", True)])) == []


def test_a_source_that_equals_its_reference_is_no_copy() -> None:
    assert not Output(1, "Anna Karenina", "Anna Karenina", "Anna Karenina", True).copied
    assert not Output(1, "a b c d", "a b c d", "a b c d", True).copied


def test_the_length_ratio_is_that_of_all_characters() -> None:
    outputs = [Output(1, "s", "abcd", "ab", True), Output(2, "s", "abcdef", "abc", True)]
    assert length_ratio(outputs) == 0.5
    without = [Output(3, "s", " ", "abcd", True), Output(4, "", "a", "abcd", True)]
    assert length_ratio([*outputs, *without]) == 0.5, "lines without text have no length to compare"
    assert length_ratio(without) == 1
