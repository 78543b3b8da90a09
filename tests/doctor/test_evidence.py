"""Quoted lines and shares in the evidence of a finding."""

from __future__ import annotations

from manyheads.doctor.evidence import Example, quote, share


def test_long_lines_are_quoted_in_part() -> None:
    assert quote([]) == ""
    assert quote([Example(1_234, "x" * 100)]) == f'; line 1,234: "{"x" * 77}..."'


def test_a_share_of_nothing_is_zero() -> None:
    assert (share(3, 4), share(0, 0)) == (0.75, 0.0)
