"""The tensors of one update: the shift by one, the marks, the padding, the counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.batch import make_batch, next_length, pad_rows, real_positions

PAD, BOS, EOS = 1, 2, 3

Row = list[int]
rows = st.lists(st.integers(4, 99), max_size=6)
pairs = st.lists(st.tuples(rows, rows), min_size=1, max_size=7)


def unpadded(row: torch.Tensor) -> Row:
    """The ids before the padding, after checking that padding stands at the end alone."""
    ids = row.tolist()
    length = next((place for place, token in enumerate(ids) if token == PAD), len(ids))
    assert ids[length:] == [PAD] * (len(ids) - length)
    return ids[:length]


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_the_model_is_fed_each_token_and_must_predict_the_one_after_it(found: list[tuple[Row, Row]]) -> None:
    sources, targets = [source for source, _ in found], [target for _, target in found]
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    for place, (source, target) in enumerate(found):
        assert unpadded(batch.source[place]) == [*source, EOS]
        assert unpadded(batch.target_in[place]) == [BOS, *target]
        assert unpadded(batch.target_out[place]) == [*target, EOS]
        length = len(target)
        assert batch.target_in[place, 1 : length + 1].tolist() == batch.target_out[place, :length].tolist()


def test_the_first_target_token_is_predicted_and_from_the_begin_mark_alone() -> None:
    batch = make_batch([[11, 12]], [[21, 22, 23]], pad=PAD, bos=BOS, eos=EOS)
    assert batch.target_in.tolist() == [[BOS, 21, 22, 23]]
    assert batch.target_out.tolist() == [[21, 22, 23, EOS]]


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_counts_are_of_real_tokens_with_their_end_marks(found: list[tuple[Row, Row]]) -> None:
    sources, targets = [source for source, _ in found], [target for _, target in found]
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    assert batch.source_tokens == int((batch.source != PAD).sum())
    assert batch.target_tokens == int((batch.target_out != PAD).sum()) == int((batch.target_in != PAD).sum())


def test_each_tensor_is_as_long_as_its_own_longest_row() -> None:
    batch = make_batch([[5] * 6, [5]], [[7], [7] * 10, []], pad=PAD, bos=BOS, eos=EOS)
    assert batch.source.shape == (2, 7)
    assert batch.target_in.shape == batch.target_out.shape == (3, 11)


def test_an_empty_side_is_its_mark_alone() -> None:
    batch = make_batch([[], [8, 9]], [[8], []], pad=PAD, bos=BOS, eos=EOS)
    assert batch.source.tolist() == [[EOS, PAD, PAD], [8, 9, EOS]]
    assert batch.target_in.tolist() == [[BOS, 8], [BOS, PAD]]
    assert batch.target_out.tolist() == [[8, EOS], [EOS, PAD]]
    assert (batch.source_tokens, batch.target_tokens) == (4, 3)


@pytest.mark.parametrize("kind", [list, lambda row: np.array(row, dtype=np.int32)], ids=["list", "int32 array"])
def test_ids_are_int64_whatever_they_come_as(kind: type) -> None:
    batch = make_batch([kind([70_000, 4])], [kind([5])], pad=PAD, bos=BOS, eos=EOS)
    assert batch.source.dtype == batch.target_in.dtype == batch.target_out.dtype == torch.int64
    assert batch.source.tolist() == [[70_000, 4, EOS]]


def test_rows_are_padded_without_marks_unless_they_are_asked_for() -> None:
    assert pad_rows([[4, 5], [6]], PAD).tolist() == [[4, 5], [6, PAD]]
    assert pad_rows([[4, 5], [6]], PAD, first=BOS, last=EOS).tolist() == [[BOS, 4, 5, EOS], [BOS, 6, EOS, PAD]]
    assert pad_rows([], PAD).shape == (0, 0)


def test_the_mark_zero_is_a_mark() -> None:
    assert pad_rows([[4]], PAD, first=0, last=0).tolist() == [[0, 4, 0]]


def test_a_batch_moves_to_a_device_whole() -> None:
    batch = make_batch([[4]], [[5, 6]], pad=PAD, bos=BOS, eos=EOS)
    moved = batch.to(torch.device("meta"))
    assert {
        part.device.type for part in (moved.source, moved.target_in, moved.target_out, moved.target_positions)
    } == {"meta"}
    assert (moved.source_tokens, moved.target_tokens) == (2, 3)


def test_the_places_of_real_target_tokens_are_known() -> None:
    batch = make_batch([[4], [4, 5]], [[5, 6, 7], []], pad=PAD, bos=BOS, eos=EOS)
    assert batch.target_out.flatten()[batch.target_positions].tolist() == [5, 6, 7, EOS, EOS]
    for half in batch.halves():
        assert half.target_out.flatten()[half.target_positions].tolist() == half.target_out.flatten().tolist()


def test_twice_a_batch_is_all_pairs_and_all_again() -> None:
    batch = make_batch([[4], [4, 5]], [[5, 6], []], pad=PAD, bos=BOS, eos=EOS)
    both = batch.twice()
    assert both.source.tolist() == 2 * batch.source.tolist()
    assert both.target_in.tolist() == 2 * batch.target_in.tolist()
    assert both.target_out.flatten()[both.target_positions].tolist() == 2 * [5, 6, EOS, EOS]
    assert (both.source_tokens, both.target_tokens) == (batch.source_tokens, batch.target_tokens)


def test_lengths_to_pad_to_are_few_and_at_most_half_as_long_again() -> None:
    found = [next_length(length) for length in range(1, 4_097)]
    assert all(longer >= length for length, longer in enumerate(found, 1))
    assert all(2 * longer <= 3 * length for length, longer in enumerate(found, 1) if length > 8)
    assert found == sorted(found)
    assert sorted(set(found)) == sorted([2**n for n in range(3, 13)] + [3 * 2**n for n in range(2, 11)])


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_more_padding_changes_nothing_else(found: list[tuple[Row, Row]]) -> None:
    sources, targets = [source for source, _ in found], [target for _, target in found]
    batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
    longer = batch.padded(1_000)
    assert longer.source.shape == (len(found), next_length(batch.source.size(1)))
    assert longer.target_in.shape == longer.target_out.shape == (len(found), next_length(batch.target_in.size(1)))
    for name in ("source", "target_in", "target_out"):
        for before, after in zip(getattr(batch, name), getattr(longer, name), strict=True):
            assert unpadded(after) == unpadded(before)
    assert longer.target_positions.tolist() == real_positions(longer.target_out, PAD).tolist()
    assert (longer.source_tokens, longer.target_tokens) == (batch.source_tokens, batch.target_tokens)


def test_padding_ends_at_a_limit() -> None:
    """But nothing is cut off."""
    batch = make_batch([[4] * 9], [[5] * 21], pad=PAD, bos=BOS, eos=EOS)
    assert [batch.padded(limit).source.size(1) for limit in (7, 11, 12, 13)] == [10, 11, 12, 12]
    assert [batch.padded(limit).target_out.size(1) for limit in (7, 23, 24, 25)] == [22, 23, 24, 24]
