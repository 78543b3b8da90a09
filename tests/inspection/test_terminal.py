"""Pictures made of characters stand straight, whatever the script."""

from __future__ import annotations

import torch

from manyheads.inspection.terminal import display_width, heat_map


def test_a_wide_letter_takes_two_columns_and_a_combining_one_none() -> None:
    assert display_width("한국") == 4
    assert display_width("ab") == 2
    assert display_width("e\u0301") == 1


def test_rows_and_columns_stand_under_each_other_in_hangul_too() -> None:
    lines = heat_map(torch.tensor([[0.0, 1.0], [0.5, 0.25]]), ["나는", "go"], ["ab", "저는"])
    edges = {display_width(line.partition("│")[0]) for line in lines[:2]}
    assert edges == {5}
    assert lines[0].endswith("│  ██")
    assert lines[1].endswith("│▒▒░░")
    assert lines[3:] == ["      a 저", "      b 는"]


def test_darker_means_more() -> None:
    line = heat_map(torch.tensor([[0.0, 0.25, 0.5, 0.75, 1.0]]), ["x"], list("abcde"))[0]
    assert line == "x │  ░░▒▒▓▓██"
