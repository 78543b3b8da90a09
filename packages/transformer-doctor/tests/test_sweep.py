"""The quick part of a sweep leaves no host and no defect out."""

from __future__ import annotations

from itertools import product

from specimens.sweep import covering


def test_every_value_of_every_column_is_quick_and_every_case_is_kept() -> None:
    every = [*product("abc", range(5)), ("d", 7)]
    cases = covering(every)
    quick = [case.values for case in cases if not case.marks]
    assert [case.values for case in cases] == every
    assert {letter for letter, _ in quick} == set("abcd")
    assert {number for _, number in quick} == {*range(5), 7}
    assert len(quick) == 6
