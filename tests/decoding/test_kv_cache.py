"""The KV cache, compared with one list of tensors per row that is copied whenever a row continues another row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from manyheads.decoding.kv_cache import _FIRST_CAPACITY, KVCache

LAYERS, HEADS, WIDTH = 2, 3, 5
Row = list[Tensor]  # keys and values that a row attends to, each (LAYERS, 2, HEADS, WIDTH)


def cache_of(sentences: int, dtype: torch.dtype = torch.float64) -> KVCache:
    return KVCache(LAYERS, (sentences, HEADS, WIDTH), torch.empty(0, dtype=dtype))


def write(cache: KVCache, rows: list[list[Row]]) -> None:
    """Append a token to every row (G, W) of the cache and of the lists; compare what each row attends to."""
    sentences, width = len(rows), len(rows[0])
    new = torch.randn(LAYERS, 2, sentences, HEADS, width, WIDTH, dtype=cache.store.dtype)
    cache.begin_step(width)
    for layer, keys_values in enumerate(new):
        all_keys, all_values, bias = cache.append(layer, keys_values)
        for sentence in range(sentences):
            for row in range(width):
                if layer == 0:
                    rows[sentence][row].append(new[:, :, sentence, :, row])
                seen = torch.ones(cache.length, dtype=torch.bool)
                if bias is not None:
                    assert bias.shape == (sentences, 1, width, cache.length)
                    seen = bias[sentence, 0, row] == 0
                    assert bool((bias[sentence, 0, row][~seen] == -torch.inf).all())
                right = torch.stack(rows[sentence][row], 2)  # (LAYERS, 2, T, HEADS, WIDTH)
                for found, part in ((all_keys, 0), (all_values, 1)):
                    assert torch.equal(found[sentence][:, seen].transpose(0, 1), right[layer, part])


def select_rows(cache: KVCache, parents: Tensor, width: int) -> None:
    """Select rows of each sentence in the cache: indices (G, W') below W."""
    cache.select_rows((torch.arange(len(parents))[:, None] * width + parents).flatten())


def selected(rows: list[list[Row]], parents: Tensor) -> list[list[Row]]:
    """Return the lists of the selected rows (G, W')."""
    return [[list(rows[sentence][row]) for row in part] for sentence, part in enumerate(parents.tolist())]


@pytest.mark.parametrize("seed", range(7))
def test_each_row_attends_to_its_own_tokens_only(seed) -> None:
    """Exceed the first capacity; select rows, change their number, drop and repeat sentences."""
    rng = torch.Generator().manual_seed(seed)

    def draw(limit: int, *shape: int) -> Tensor:
        return torch.randint(limit, shape, generator=rng)

    cache, rows = cache_of(4), [[[]] for _ in range(4)]
    for step in range(3 * _FIRST_CAPACITY):
        write(cache, rows)
        if step % 5 == 4:
            sentences = draw(len(rows), int(draw(5, 1)) + 1)
            cache.select_sentences(sentences)
            rows = [[list(row) for row in rows[sentence]] for sentence in sentences.tolist()]
        if step % 3 == 1:
            parents = draw(len(rows[0]), len(rows), int(draw(4, 1)) + 1)
            select_rows(cache, parents, len(rows[0]))
            rows = selected(rows, parents)


def test_a_cache_with_one_row_per_sentence_needs_no_mask() -> None:
    cache, rows = cache_of(3), [[[]] for _ in range(3)]
    for _ in range(_FIRST_CAPACITY + 1):
        write(cache, rows)
    assert cache.bias is None


def test_selecting_rows_of_an_empty_cache_does_nothing() -> None:
    cache = cache_of(2)
    select_rows(cache, torch.zeros(2, 3, dtype=torch.int64), 1)
    cache.select_sentences(torch.tensor([1, 0]))
    write(cache, [[[], [], []] for _ in range(2)])


def test_selecting_rows_does_not_reallocate_the_cache() -> None:
    cache, rows = cache_of(2), [[[], []] for _ in range(2)]
    write(cache, rows)
    before = cache.store.data_ptr()
    select_rows(cache, torch.tensor([[1, 1], [1, 0]]), 2)
    write(cache, selected(rows, torch.tensor([[1, 1], [1, 0]])))
    assert cache.store.data_ptr() == before


@pytest.mark.parametrize("width", [1, 4])
def test_the_cache_is_reallocated_only_a_few_times(width) -> None:
    cache = cache_of(1)
    moves, address = 0, 0
    for _ in range(1_000):
        cache.begin_step(width)
        cache.append(0, torch.randn(2, 1, HEADS, width, WIDTH, dtype=torch.float64))
        moves, address = moves + (cache.store.data_ptr() != address), cache.store.data_ptr()
    assert moves <= 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_cache_keeps_its_dtype(dtype) -> None:
    cache, rows = cache_of(2, dtype), [[[], []] for _ in range(2)]
    for _ in range(_FIRST_CAPACITY + 1):
        write(cache, rows)
    assert cache.bias is not None
    assert cache.store.dtype == cache.bias.dtype == dtype
