"""The tensors of one update: shifted targets, begin and end marks, padding and token counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.tensors.pairs import make_batch, pad_rows

PAD, BOS, EOS = 1, 2, 3

Row = list[int]
rows = st.lists(st.integers(4, 99), max_size=6)
pairs = st.lists(st.tuples(rows, rows), min_size=1, max_size=7)


def unpadded(row: torch.Tensor) -> Row:
    """Return the ids before the padding; fail if padding occurs before another id."""
    ids = row.tolist()
    length = next((index for index, token in enumerate(ids) if token == PAD), len(ids))
    assert ids[length:] == [PAD] * (len(ids) - length)
    return ids[:length]


@settings(max_examples=40)
@given(pairs)
def test_the_target_input_is_the_target_output_shifted_by_one(drawn: list[tuple[Row, Row]]) -> None:
    sources, targets = [source for source, _ in drawn], [target for _, target in drawn]
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    for index, (source, target) in enumerate(drawn):
        assert unpadded(batch.source[index]) == [*source, EOS]
        assert unpadded(batch.target_in[index]) == [BOS, *target]
        assert unpadded(batch.target_out[index]) == [*target, EOS]
        length = len(target)
        assert batch.target_in[index, 1 : length + 1].tolist() == batch.target_out[index, :length].tolist()


@settings(max_examples=40)
@given(pairs)
def test_token_counts_include_end_marks_and_exclude_padding(drawn: list[tuple[Row, Row]]) -> None:
    sources, targets = [source for source, _ in drawn], [target for _, target in drawn]
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    assert batch.source_tokens == int((batch.source != PAD).sum())
    assert batch.target_tokens == int((batch.target_out != PAD).sum()) == int((batch.target_in != PAD).sum())


def test_each_tensor_is_as_long_as_its_own_longest_row() -> None:
    batch = make_batch([[5] * 6, [5]], [[7], [7] * 10, []], pad=PAD, bos=BOS, eos=EOS)
    assert batch.source.shape == (2, 7)
    assert batch.target_in.shape == batch.target_out.shape == (3, 11)


@pytest.mark.parametrize("kind", [list, lambda row: np.array(row, dtype=np.int32)], ids=["list", "int32 array"])
def test_ids_become_int64_from_any_sequence(kind: type) -> None:
    batch = make_batch([kind([70_000, 4])], [kind([5])], pad=PAD, bos=BOS, eos=EOS)
    assert batch.source.dtype == batch.target_in.dtype == batch.target_out.dtype == torch.int64
    assert batch.source.tolist() == [[70_000, 4, EOS]]


def test_rows_are_padded_without_begin_and_end_marks_by_default() -> None:
    assert pad_rows([[4, 5], [6]], PAD).tolist() == [[4, 5], [6, PAD]]
    assert pad_rows([[4, 5], [6]], PAD, first=BOS, last=EOS).tolist() == [[BOS, 4, 5, EOS], [BOS, 6, EOS, PAD]]
    assert pad_rows([], PAD).shape == (0, 0)


def test_a_begin_or_end_mark_may_have_the_id_0() -> None:
    assert pad_rows([[4]], PAD, first=0, last=0).tolist() == [[0, 4, 0]]


def test_all_tensors_of_a_batch_move_to_a_device() -> None:
    batch = make_batch([[4]], [[5, 6]], pad=PAD, bos=BOS, eos=EOS)
    moved = batch.to(torch.device("meta"))
    assert {
        part.device.type for part in (moved.source, moved.target_in, moved.target_out, moved.target_positions)
    } == {"meta"}
    assert (moved.source_tokens, moved.target_tokens) == (2, 3)


def test_target_positions_are_those_of_real_tokens() -> None:
    batch = make_batch([[4], [4, 5]], [[5, 6, 7], []], pad=PAD, bos=BOS, eos=EOS)
    assert batch.target_out.flatten()[batch.target_positions].tolist() == [5, 6, 7, EOS, EOS]
    for half in batch.halves():
        assert half.target_out.flatten()[half.target_positions].tolist() == half.target_out.flatten().tolist()


def test_a_doubled_batch_holds_all_pairs_twice_in_a_row() -> None:
    batch = make_batch([[4], [4, 5]], [[5, 6], []], pad=PAD, bos=BOS, eos=EOS)
    both = batch.twice()
    assert both.source.tolist() == 2 * batch.source.tolist()
    assert both.target_in.tolist() == 2 * batch.target_in.tolist()
    assert both.target_out.flatten()[both.target_positions].tolist() == 2 * [5, 6, EOS, EOS]
    assert (both.source_tokens, both.target_tokens) == (batch.source_tokens, batch.target_tokens)
