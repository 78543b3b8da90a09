"""Texts as tensors: begin and end marks, token types, truncation and padding."""

from __future__ import annotations

import torch

from manyheads.tensors.examples import (
    NO_LABEL,
    Example,
    Examples,
    blank_examples,
    make_examples,
)

PAD, BOS, EOS = 1, 2, 3


def make_test_examples(rows: list[Example], *, with_types: bool = True) -> Examples:
    return make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=with_types)


ROWS = [Example([5, 6, 7], 2), Example([8, EOS, 9, 10], 0), Example([11], 1)]


def test_texts_have_begin_and_end_marks_and_types_distinguish_two_texts() -> None:
    batch = make_test_examples(ROWS)
    assert batch.ids.tolist() == [[2, 5, 6, 7, 3, 1], [2, 8, 3, 9, 10, 3], [2, 11, 3, 1, 1, 1]]
    assert batch.types is not None
    assert batch.types.tolist() == [[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]]
    assert batch.labels.tolist() == [2, 0, 1]
    assert (batch.examples, batch.target_tokens, batch.source_tokens, batch.num_positions) == (3, 3, 14, 21)
    assert make_test_examples(ROWS, with_types=False).types is None


def test_halves_hold_the_examples_of_a_batch_without_needless_padding() -> None:
    first, second = make_test_examples(ROWS).halves()
    assert first.ids.tolist() == [[2, 5, 6, 7, 3]]
    assert second.ids.tolist() == [[2, 8, 3, 9, 10, 3], [2, 11, 3, 1, 1, 1]]
    assert second.types is not None
    assert second.types.shape == (2, 6)
    assert (first.source_tokens, second.source_tokens) == (5, 9)
    assert torch.cat([first.labels, second.labels]).tolist() == [2, 0, 1]
    assert first.halves() == [first]


def test_a_blank_batch_has_no_targets() -> None:
    blank = blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=True)
    assert (blank.target_tokens, blank.source_tokens) == (0, 0)
    assert blank.labels.tolist() == [NO_LABEL]
