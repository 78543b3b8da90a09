"""The best next tokens of a row, compared with a stable sort of the whole row."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decoding.candidates import best_tokens
from manyheads.errors import OverflowedError


def by_sorting(log_probs: Tensor, count: int, forbidden: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    allowed = log_probs.clone()
    allowed[:, list(forbidden)] = -torch.inf
    values, ids = allowed.double().sort(dim=1, descending=True, stable=True)
    return values[:, :count], ids[:, :count]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    width=st.sampled_from([5, 61, 640, 1999, 4096]),  # wide rows are searched in chunks
    count=st.sampled_from([1, 2, 7, 13]),
    levels=st.sampled_from([1, 3, 40, 0]),
    forbidden=st.sampled_from([(), (1,), (1, 2, 0)]),
)
def test_the_best_tokens_are_those_of_a_stable_sort(seed, width, count, levels, forbidden) -> None:
    """With few levels nearly all values are equal; with levels = 0 none are."""
    rng = torch.Generator().manual_seed(seed)
    if levels:
        log_probs = -torch.randint(levels, (11, width), generator=rng).float()
    else:
        log_probs = torch.randn(11, width, generator=rng)
    log_probs[torch.rand(11, width, generator=rng) < 0.1] = -torch.inf
    before = log_probs.clone()
    values, ids = best_tokens(log_probs, count, forbidden)
    expected_values, expected_ids = by_sorting(log_probs, count, forbidden)
    possible = expected_values > -torch.inf
    assert torch.equal(values, expected_values)
    assert torch.equal(ids[possible], expected_ids[possible])
    assert torch.equal(log_probs, before)


def test_the_best_tokens_of_a_row_do_not_depend_on_other_rows() -> None:
    log_probs = torch.randn(17, 3001, generator=torch.Generator().manual_seed(1)).bfloat16().float()
    values, ids = best_tokens(log_probs, 6, (1, 2))
    for row in range(17):
        alone_values, alone_ids = best_tokens(log_probs[row : row + 1], 6, (1, 2))
        assert torch.equal(alone_values[0], values[row])
        assert torch.equal(alone_ids[0], ids[row])


def test_a_log_probability_of_nan_is_refused() -> None:
    log_probs = torch.zeros(3, 900)
    log_probs[1, 777] = torch.nan
    with pytest.raises(OverflowedError):
        best_tokens(log_probs, 2, ())
