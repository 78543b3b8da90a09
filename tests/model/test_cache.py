"""The shared past against lists of tensors, one a row, that are copied whenever a row goes on from another."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from manyheads.model.cache import FIRST_CAPACITY, SharedPast

LAYERS, HEADS, WIDTH = 2, 3, 5
Row = list[Tensor]  # what a row may attend to, each (LAYERS, 2, HEADS, WIDTH)


def past_of(sentences: int, dtype: torch.dtype = torch.float64) -> SharedPast:
    return SharedPast(LAYERS, (sentences, HEADS, WIDTH), torch.empty(0, dtype=dtype))


def write(past: SharedPast, rows: list[list[Row]]) -> None:
    """Give every row (G, W) a token, in the past and in the lists, and compare all that each row may see."""
    sentences, width = len(rows), len(rows[0])
    new = torch.randn(LAYERS, 2, sentences, HEADS, width, WIDTH, dtype=past.store.dtype)
    past.begin(width)
    for layer, keys_values in enumerate(new):
        all_keys, all_values, bias = past.append(layer, keys_values)
        for sentence in range(sentences):
            for row in range(width):
                if layer == 0:
                    rows[sentence][row].append(new[:, :, sentence, :, row])
                seen = torch.ones(past.length, dtype=torch.bool)
                if bias is not None:
                    assert bias.shape == (sentences, 1, width, past.length)
                    seen = bias[sentence, 0, row] == 0
                    assert bool((bias[sentence, 0, row][~seen] == -torch.inf).all())
                right = torch.stack(rows[sentence][row], 2)  # (LAYERS, 2, T, HEADS, WIDTH)
                for found, part in ((all_keys, 0), (all_values, 1)):
                    assert torch.equal(found[sentence][:, seen].transpose(0, 1), right[layer, part])


def keep_rows(past: SharedPast, parents: Tensor, width: int) -> None:
    """Go on with these of the W rows of each sentence (G, W')."""
    past.keep_rows((torch.arange(len(parents))[:, None] * width + parents).flatten())


def chosen(rows: list[list[Row]], parents: Tensor) -> list[list[Row]]:
    """The lists of the rows that go on (G, W')."""
    return [[list(rows[sentence][row]) for row in part] for sentence, part in enumerate(parents.tolist())]


@pytest.mark.parametrize("seed", range(7))
def test_each_row_sees_its_own_past_and_no_other(seed) -> None:
    """Beyond the first capacity; rows go on from others, their number changes, sentences leave and come twice."""
    dice = torch.Generator().manual_seed(seed)

    def draw(limit: int, *shape: int) -> Tensor:
        return torch.randint(limit, shape, generator=dice)

    past, rows = past_of(4), [[[]] for _ in range(4)]
    for step in range(3 * FIRST_CAPACITY):
        write(past, rows)
        if step % 5 == 4:
            sentences = draw(len(rows), int(draw(5, 1)) + 1)
            past.keep_sentences(sentences)
            rows = [[list(row) for row in rows[sentence]] for sentence in sentences.tolist()]
        if step % 3 == 1:
            parents = draw(len(rows[0]), len(rows), int(draw(4, 1)) + 1)
            keep_rows(past, parents, len(rows[0]))
            rows = chosen(rows, parents)


def test_one_row_a_sentence_needs_no_mask() -> None:
    past, rows = past_of(3), [[[]] for _ in range(3)]
    for _ in range(FIRST_CAPACITY + 1):
        write(past, rows)
    assert past.bias is None


def test_choosing_before_anything_was_written_does_nothing() -> None:
    past = past_of(2)
    keep_rows(past, torch.zeros(2, 3, dtype=torch.int64), 1)
    past.keep_sentences(torch.tensor([1, 0]))
    write(past, [[[], [], []] for _ in range(2)])


def test_going_on_from_other_rows_moves_nothing() -> None:
    past, rows = past_of(2), [[[], []] for _ in range(2)]
    write(past, rows)
    before = past.store.data_ptr()
    keep_rows(past, torch.tensor([[1, 1], [1, 0]]), 2)
    write(past, chosen(rows, torch.tensor([[1, 1], [1, 0]])))
    assert past.store.data_ptr() == before


@pytest.mark.parametrize("width", [1, 4])
def test_the_past_is_moved_only_a_few_times(width) -> None:
    past = past_of(1)
    moves, where = 0, 0
    for _ in range(1_000):
        past.begin(width)
        past.append(0, torch.randn(2, 1, HEADS, width, WIDTH, dtype=torch.float64))
        moves, where = moves + (past.store.data_ptr() != where), past.store.data_ptr()
    assert moves <= 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_past_keeps_its_number_format(dtype) -> None:
    past, rows = past_of(2, dtype), [[[], []] for _ in range(2)]
    for _ in range(FIRST_CAPACITY + 1):
        write(past, rows)
    assert past.bias is not None
    assert past.store.dtype == past.bias.dtype == dtype
