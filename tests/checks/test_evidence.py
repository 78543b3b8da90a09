"""Quoted lines and shares in the evidence of a finding."""

from __future__ import annotations

from manyheads.checks.evidence import _QUOTED, QuotedLines, Share


def test_long_lines_are_quoted_in_part() -> None:
    quoted = QuotedLines()
    assert str(quoted) == ""
    quoted.add(1_234, "x" * 100)
    assert str(quoted) == f'; line 1,234: "{"x" * 77}..."'


def test_all_lines_are_counted_and_the_first_are_quoted() -> None:
    quoted = QuotedLines()
    for line in range(1, 8):
        quoted.add(line, "y")
    assert quoted.count == 7
    assert str(quoted) == "".join(f'; line {line}: "y"' for line in range(1, _QUOTED + 1))


def test_a_share_of_nothing_is_zero() -> None:
    assert (Share(3, 4), Share(0, 0)) == (0.75, 0.0)


def test_a_share_names_its_part_and_its_whole() -> None:
    assert f"{Share(12, 1_000)}" == "12 of 1,000 (1.2 %)"
    assert f"{Share(1_500, 2_000)}" == "1,500 of 2,000 (75 %)"
    assert f"{Share(1, 3):.1%}" == "33.3%"
