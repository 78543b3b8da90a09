"""Changes are measured by the spread of the scores, whatever their scale."""

from __future__ import annotations

import math

import torch

from transformer_doctor.tolerances import relative_change


def test_a_change_is_a_share_of_the_spread() -> None:
    before = torch.tensor([1.0, 3.0, 5.0])
    assert relative_change(before, before) == 0
    assert relative_change(before, before + torch.tensor([0.0, 0.0, 1.0])) == 0.25
    assert relative_change(1e6 * before, 1e6 * before + 1e6) == 0.25


def test_a_score_that_is_nan_is_an_infinite_change() -> None:
    before = torch.tensor([1.0, 2.0])
    assert relative_change(before, torch.tensor([1.0, math.nan])) == math.inf
