"""Heat maps made of characters are aligned in every script."""

from __future__ import annotations

import pytest
import torch
from rich.cells import cell_len

from manyheads.views.terminal import fit, heat_map


def test_a_wide_letter_takes_two_columns_and_a_combining_one_none() -> None:
    assert fit("한국", 5) == "한국 "
    assert (fit("한국어", 5), fit("한국어", 4)) == ("한국…", "한… ")
    assert fit("ab", 2) == "ab"
    assert fit("e\u0301", 2) == "e\u0301 "
    assert fit("\u1112\u1161\u11ab", 3) == "\u1112\u1161\u11ab ", "a syllable of three letters is as wide as one"


def test_rows_and_columns_are_aligned_in_hangul() -> None:
    lines = heat_map(torch.tensor([[0.0, 1.0], [0.5, 0.25]]), ["나는", "go"], ["ab", "고양이는"])
    assert lines == [
        "      ab   고양이는",
        "     ┌──────────────",
        "나는 │     1.00",
        "  go │0.50 ░░░░░░░░",
    ]
    assert cell_len(lines[0].partition("고")[0]) == cell_len(lines[2].partition("1")[0])


def test_columns_are_numbered_where_names_do_not_fit_and_the_strongest_is_named() -> None:
    weights = torch.tensor([[0.0, 0.25, 0.75], [0.5, 0.5, 0.0]])
    names = ["▁Ein", "▁Donaudampfschiff", "고양이"]
    lines = heat_map(weights, ["a", "b"], names, width=32)
    assert lines == [
        "   1    2    3",
        "  ┌───────────────",
        "a │     ░░░░ 0.75  ← 고양이 0.75",
        "b │0.50 ▒▒▒▒       ← ▁Ein 0.50",
        "",
        "1 ▁Ein  2 ▁Donaudampfschiff",
        "3 고양이",
    ]


@pytest.mark.parametrize("count", [12, 33, 90])
def test_a_long_sentence_stays_within_the_width_and_shows_every_column(count: int) -> None:
    weights = torch.ones(3, count) / count
    names = [f"▁wort{number}" for number in range(count)]
    lines = heat_map(weights, ["a", "b", "c"], names, width=80)
    assert max(map(cell_len, lines)) <= 80
    drawn = sum(line.partition("┌")[2].count("─") for line in lines)
    assert drawn in (2 * count, 5 * count)
    if count == 33:  # narrow columns: every fifth is numbered
        assert lines[0].split() == ["1", *map(str, range(5, 34, 5))]
    assert all(name in "\n".join(lines) for name in names)


def test_larger_values_are_darker_and_negative_values_have_a_minus_sign() -> None:
    line = heat_map(torch.tensor([[0.0, 0.25, 0.5, 0.75, 1.0, -0.75]]), ["x"], list("abcdef"))[2]
    assert line == "x │     ░░░░ ▒▒▒▒ ▓▓▓▓ 1.00 -▓▓▓"
    assert heat_map(torch.tensor([[4.0, -8.0]]), ["x"], ["a", "b"], high=8.0)[2] == "x │▒▒▒▒ -8.0"
