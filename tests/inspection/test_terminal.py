"""Pictures made of characters stand straight, whatever the script."""

from __future__ import annotations

import torch
from rich.cells import cell_len

from manyheads.inspection.terminal import fit, heat_map


def test_a_wide_letter_takes_two_columns_and_a_combining_one_none() -> None:
    assert fit("한국", 5) == "한국 "
    assert fit("ab", 2) == "ab"
    assert fit("e\u0301", 2) == "e\u0301 "
    assert fit("\u1112\u1161\u11ab", 3) == "\u1112\u1161\u11ab ", "a syllable of three letters is as wide as one"


def test_rows_and_columns_stand_under_each_other_in_hangul_too() -> None:
    lines = heat_map(torch.tensor([[0.0, 1.0], [0.5, 0.25]]), ["나는", "go"], ["ab", "저는"])
    edges = {cell_len(line.partition("│")[0]) for line in lines[:2]}
    assert edges == {5}
    assert lines[0].endswith("│  ██")
    assert lines[1].endswith("│▒▒░░")
    assert lines[3:] == ["      a 저", "      b 는"]


def test_darker_means_more() -> None:
    line = heat_map(torch.tensor([[0.0, 0.25, 0.5, 0.75, 1.0]]), ["x"], list("abcde"))[0]
    assert line == "x │  ░░▒▒▓▓██"
