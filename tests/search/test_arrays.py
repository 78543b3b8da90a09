"""Log-probabilities and next tokens in NumPy arrays: those of torch, and of a search by sorting."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import FORBIDDEN
from tests.tolerances import assert_close

from manyheads.errors import OverflowedError
from manyheads.search.arrays import best_tokens, draw_tokens, likeliest, log_softmax
from manyheads.search.options import Sampling


def test_log_probabilities_are_those_of_torch() -> None:
    logits = np.random.default_rng(1).normal(size=(3, 7)).astype(np.float32) * 20
    expected = torch.from_numpy(logits).log_softmax(-1)
    assert_close(torch.from_numpy(log_softmax(logits)), expected, dtype=torch.float32)


@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, -math.inf]), min_size=3, max_size=12), count=st.integers(1, 14)
)
def test_the_best_tokens_are_possible_and_of_equal_ones_the_lower_ids(values, count) -> None:
    possible = [token for token in range(1, len(values)) if values[token] > -math.inf]
    expected = sorted(possible, key=lambda token: (-values[token], token))[:count]
    assert best_tokens(np.array(values), count, (0,)).tolist() == expected
    (token,), (value,) = likeliest(np.array([values]), (0,))
    assert value == (values[expected[0]] if expected else -math.inf)
    assert not expected or token == expected[0]


@settings(max_examples=100)
@given(
    logits=st.lists(st.sampled_from([-9.0, -1.0, 0.0, 0.5, 2.0, -math.inf]), min_size=4, max_size=9),
    uniform=st.floats(0, 1, exclude_max=True),
    temperature=st.sampled_from([0.01, 1.0, 50.0]),
    top_k=st.integers(0, 5),
    top_p=st.floats(0, 1, exclude_min=True),
)
def test_a_possible_token_is_drawn_for_every_random_number(logits, uniform, temperature, top_k, top_p) -> None:
    row = np.array([logits])
    sampling = Sampling(temperature, top_k, top_p)
    (token,), (value,) = draw_tokens(row, np.array([uniform]), sampling, FORBIDDEN)
    possible = any(value > -math.inf for token_id, value in enumerate(logits) if token_id not in FORBIDDEN)
    assert (value > -math.inf) == possible
    assert value == (row[0, token] if possible else -math.inf)
    assert not possible or token not in FORBIDDEN


def test_the_largest_random_number_draws_the_last_possible_token() -> None:
    row = log_softmax(np.array([[0.3, 0.1, 0.2, 0.1, 0.7, -np.inf]]))
    for uniform, expected in ((0.0, 0), (1 - 2**-53, 4)):
        (token,), _ = draw_tokens(row, np.array([uniform]), Sampling(), ())
        assert token == expected


def test_log_probabilities_of_nan_are_refused() -> None:
    row = np.full((1, 5), np.nan)
    with pytest.raises(OverflowedError):
        draw_tokens(row, np.zeros(1), Sampling(), ())
    with pytest.raises(OverflowedError):
        likeliest(row, ())
