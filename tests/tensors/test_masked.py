"""Masked tokens: their share, their replacements, and their positions in the tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.tolerances import sampled

from manyheads.tensors.masked import MaskedText, MaskedTexts, blank_masked, hide_tokens, make_masked

PAD, BOS, EOS, MASK = 1, 2, 3, 0
VOCABULARY = 997


def mask_tokens(ids: list[int], share: float, seed: int = 1) -> MaskedText:
    return hide_tokens(ids, share, np.random.default_rng(seed), mask=MASK, others=(4, VOCABULARY))


def test_the_configured_share_of_tokens_is_masked_in_the_three_ways_of_the_paper() -> None:
    ids = np.random.default_rng(2).integers(4, VOCABULARY, 40_000).tolist()
    row = mask_tokens(ids, 0.15)
    assert len(row.positions) / len(ids) == sampled(0.15, len(ids))
    assert row.labels.tolist() == [ids[position] for position in row.positions]
    untouched = np.delete(np.arange(len(ids)), row.positions)
    assert np.array_equal(row.ids[untouched], np.asarray(ids)[untouched])
    seen = row.ids[row.positions]
    assert np.mean(seen == MASK) == sampled(0.8, len(seen))
    assert np.mean(seen == row.labels) == sampled(0.1, len(seen))
    assert np.mean((seen != MASK) & (seen != row.labels)) == sampled(0.1, len(seen))
    assert seen[seen != MASK].min() >= 4


@pytest.mark.parametrize("seed", range(5))
def test_at_least_one_token_is_masked_in_the_shortest_text(seed: int) -> None:
    assert len(mask_tokens([7], 0.01, seed).labels) == 1


def targets_of(batch: MaskedTexts) -> list[tuple[int, list[int], int]]:
    """Return (position in its text, the text without padding, the label) of each token to predict."""
    length = batch.ids.size(1)
    texts = [[token for token in row if token != PAD] for row in batch.ids.tolist()]
    return [
        (position % length, texts[position // length], label)
        for position, label in zip(batch.positions.tolist(), batch.labels.tolist(), strict=True)
    ]


def make_batch() -> MaskedTexts:
    rng = np.random.default_rng(3)
    rows = [mask_tokens(rng.integers(4, 50, count).tolist(), 0.4, count) for count in (3, 9, 1, 5, 7)]
    return make_masked(rows, pad=PAD, bos=BOS, eos=EOS)


def test_positions_are_those_of_the_masked_tokens() -> None:
    row = MaskedText(np.array([8, MASK, 9]), np.array([1]), np.array([5]))
    other = MaskedText(np.array([MASK]), np.array([0]), np.array([6]))
    batch = make_masked([row, other], pad=PAD, bos=BOS, eos=EOS)
    assert batch.ids.tolist() == [[2, 8, 0, 9, 3], [2, 0, 3, 1, 1]]
    assert batch.ids.flatten()[batch.positions].tolist() == [MASK, MASK]
    assert (batch.positions.tolist(), batch.labels.tolist(), batch.source_tokens) == ([2, 6], [5, 6], 8)


def test_halves_have_the_same_targets() -> None:
    batch = make_batch()
    halves = batch.halves()
    assert [len(half.ids) for half in halves] == [2, 3]
    assert targets_of(halves[0]) + targets_of(halves[1]) == targets_of(batch)
    assert sum(half.source_tokens for half in halves) == batch.source_tokens


def test_a_blank_batch_has_no_targets() -> None:
    blank = blank_masked(pad=PAD, bos=BOS, eos=EOS)
    assert blank.target_tokens == 0
    assert torch.equal(blank.ids, torch.tensor([[BOS, EOS]]))
