"""The window of a language model."""

from __future__ import annotations

from itertools import pairwise

import pytest

from manyheads.inference.window import held_tokens, window_step


@pytest.mark.parametrize("window", range(1, 12))
def test_the_window_of_a_text_equals_that_of_its_tokens_one_by_one(window: int) -> None:
    held = 0
    for length in range(1, 60):
        held = held + 1 if held < window else window - window_step(window) + 1
        assert held_tokens(length, window) == held
    lengths = [held_tokens(length, window) for length in range(window, 60)]
    assert all(later == before + 1 or later > window // 2 for before, later in pairwise(lengths))
