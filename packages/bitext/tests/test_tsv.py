"""Rows come back as they were written, also in a spreadsheet; files that quote nothing keep their quotes."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitext.tsv import join_row, split_row

TEXT = st.text(st.characters(exclude_characters="\t\r\n\0", exclude_categories=["Cs"]) | st.sampled_from('"" '))


@given(st.lists(TEXT, min_size=2))
def test_a_row_is_read_as_it_was_written(values: list[str]) -> None:
    assert split_row(join_row(values)) == values
    assert next(csv.reader([join_row(values)], "excel-tab")) == values


def test_tabs_and_line_ends_become_blanks() -> None:
    assert split_row(join_row(["a\tb", "c\r\nd", "e\nf", 1])) == ["a b", "c d", "e f", "1"]


@pytest.mark.parametrize("value", ['"No."', '"', '"a" and "b"', 'a ""b""', '"a', '""', "'a'"])
def test_quotation_marks_of_a_file_without_quotes_are_text(value: str) -> None:
    assert split_row(f"{value}\tx") == [value, "x"]
