"""Plural forms: rules and categories by language, and rules that are none."""

from __future__ import annotations

import pytest

from bitext.plurals import numbers_of_forms, plural_rule


@pytest.mark.parametrize(
    ("language", "first", "categories"),
    [
        ("ko", [[0, 1, 2]], "other"),
        ("de", [[1], [0, 2, 3]], "one other"),
        ("pt_BR", [[0, 1], [2, 3, 4]], "one many other"),
        ("pt", [[1], [0, 2, 3]], "one many other"),
        ("ru-RU", [[1, 21, 31], [2, 3, 4], [0, 5, 6]], "one few many other"),
        ("ar", [[0], [1], [2], [3, 4, 5], [11, 12, 13], [100, 101, 102]], "zero one two few many other"),
        ("xx", [[1], [0, 2, 3]], "one other"),
    ],
)
def test_plural_forms_are_those_of_the_language(language: str, first: list[list[int]], categories: str) -> None:
    rule, found = plural_rule(language)
    assert [numbers[:3] for numbers in numbers_of_forms(rule)] == first
    assert found == categories


@pytest.mark.parametrize("rule", ["n n", "n % 0", "1000000", "(" * 1_000, "n/0", ""])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of Python's own messages
        numbers_of_forms(rule)
