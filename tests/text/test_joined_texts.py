"""Two texts of one example: the longer is cut first."""

from __future__ import annotations

from itertools import product

import pytest

from manyheads.text.joined_texts import cut_text
from manyheads.text.tokenizer import EOS


def test_a_text_is_truncated_at_its_end() -> None:
    assert list(cut_text([5, 6, 7], 3, eos=EOS)) == [5, 6, 7]
    assert list(cut_text([5, 6, 7], 2, eos=EOS)) == [5, 6]


def reference_cut(first: list[int], second: list[int], limit: int, marks: int) -> list[int]:
    """Remove one token at a time from the end of the longer text, of the second if both are equally long."""
    while len(first) + len(second) + marks > limit:
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    return [*first, *[EOS] * marks, *second]


@pytest.mark.parametrize(("limit", "marks"), [(1, 1), (2, 1), (3, 1), (6, 1), (7, 1), (2, 2), (3, 2), (7, 2)])
def test_the_longer_of_two_texts_is_truncated_first(limit: int, marks: int) -> None:
    for a, b in product(range(8), repeat=2):
        first, second = list(range(10, 10 + a)), list(range(30, 30 + b))
        found = cut_text([*first, *[EOS] * marks, *second], limit, eos=EOS)
        assert list(found) == reference_cut(first, second, limit, marks)
