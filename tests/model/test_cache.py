"""The cache against lists of tensors that are concatenated and indexed anew each time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from manyheads.model.cache import FIRST_CAPACITY, KeyValueCache

HEADS, WIDTH = 3, 5


def tokens(rows: int, count: int) -> tuple[Tensor, Tensor]:
    """Keys and values, each (rows, H, count, E)."""
    keys, values = torch.randn(2, rows, HEADS, count, WIDTH, dtype=torch.float64)
    return keys, values


@pytest.mark.parametrize("counts", [[1] * 37, [7] * 11, [FIRST_CAPACITY, 1], [53, 1, 2], [1, 97, 1]])
def test_the_past_is_all_that_was_appended_in_order(counts) -> None:
    cache = KeyValueCache()
    parts = [tokens(2, count) for count in counts]
    for number, part in enumerate(parts):
        keys, values = cache.append(*part)
        assert torch.equal(keys, torch.cat([keys for keys, _ in parts[: number + 1]], 2))
        assert torch.equal(values, torch.cat([values for _, values in parts[: number + 1]], 2))
        assert cache.length == sum(counts[: number + 1])


@pytest.mark.parametrize("seed", range(7))
def test_after_any_selections_the_past_is_that_of_the_chosen_rows(seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    cache, past, rows = KeyValueCache(), None, 3
    for step in range(3 * FIRST_CAPACITY):
        part = tokens(rows, 1)
        past = part if past is None else tuple(torch.cat(pair, 2) for pair in zip(past, part, strict=True))
        for found, right in zip(cache.append(*part), past, strict=True):
            assert torch.equal(found, right)
        if step % 3 == 0:
            rows_after = int(torch.randint(1, 8, (1,), generator=generator))
            chosen = torch.randint(rows, (rows_after,), generator=generator)
            cache.select(chosen)
            past, rows = tuple(tensor[chosen] for tensor in past), rows_after


def test_a_row_chosen_twice_goes_on_as_two() -> None:
    cache = KeyValueCache()
    cache.append(*tokens(1, 2))
    cache.select(torch.tensor([0, 0]))
    new = tokens(2, 1)
    keys, values = cache.append(*new)
    assert torch.equal(keys[:, :, -1:], new[0])
    assert torch.equal(values[:, :, -1:], new[1])
    assert torch.equal(keys[0, :, :2], keys[1, :, :2])


def test_selecting_before_anything_was_appended_does_nothing() -> None:
    cache = KeyValueCache()
    cache.select(torch.tensor([1, 0]))
    part = tokens(2, 1)
    assert torch.equal(cache.append(*part)[0], part[0])


def test_the_past_is_moved_only_a_few_times() -> None:
    cache = KeyValueCache()
    moves, buffer = 0, None
    for _ in range(1_000):
        cache.append(*tokens(1, 1))
        moves, buffer = moves + (cache.keys is not buffer), cache.keys
    assert moves <= 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_past_keeps_its_number_format(dtype) -> None:
    cache = KeyValueCache()
    for _ in range(FIRST_CAPACITY + 1):
        keys, values = cache.append(*(part.to(dtype) for part in tokens(2, 1)))
    cache.select(torch.tensor([1]))
    keys, values = cache.append(*(part.to(dtype) for part in tokens(1, 1)))
    assert keys.dtype == values.dtype == dtype
