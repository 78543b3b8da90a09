"""A designed set of cases leaves no host and no defect out."""

from __future__ import annotations

from itertools import product

from specimens.sweep import covering


def test_every_value_of_every_column_is_in_some_case() -> None:
    cases = covering([*product("abc", range(5)), ("d", 7)])
    assert {letter for letter, _ in cases} == set("abcd")
    assert {number for _, number in cases} == {*range(5), 7}
    assert len(cases) == 6
