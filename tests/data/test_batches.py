"""Batches for validation and decoding: rows of similar length, within a budget."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.batches import fixed_batches


@settings(max_examples=40)
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 200))
def test_fixed_batches_hold_every_row_once_and_keep_the_budget_including_padding(
    rows: list[int], budget: int
) -> None:
    sizes = np.array(rows, dtype=np.int64)
    batches = fixed_batches(sizes, budget)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(rows)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * int(sizes[batch].max()) <= budget
        assert len(batch)


def test_fixed_batches_begin_with_the_longest_rows_and_keep_the_order_of_equals() -> None:
    batches = fixed_batches(np.array([3, 9, 3, 4, 3]), 9)
    assert [batch.tolist() for batch in batches] == [[1], [3, 0], [2, 4]]


def test_rows_without_tokens_are_batched() -> None:
    assert [batch.tolist() for batch in fixed_batches(np.array([0, 0, 0]), 2)] == [[0, 1], [2]]
