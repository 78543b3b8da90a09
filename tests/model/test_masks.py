"""Masks, in which True means "may attend", and positions of real tokens."""

from __future__ import annotations

import torch
from tests.model.samples import PAD

from manyheads.model.masks import causal_mask, padding_mask, position_ids, source_mask

IDS = torch.tensor([[5, 7, 9, 4, 3], [PAD, PAD, 8, 6, 3], [4, PAD, 6, PAD, 3], [9, 3, PAD, PAD, PAD], [PAD] * 5])


def test_the_padding_mask_shows_the_real_keys_alone_to_every_query() -> None:
    mask = padding_mask(IDS, PAD)
    assert mask.shape == (5, 1, 1, 5)
    assert mask.dtype == torch.bool
    for row, ids in enumerate(IDS.tolist()):
        assert mask[row, 0, 0].tolist() == [token != PAD for token in ids]


def test_the_padding_mask_uses_the_id_of_the_vocabulary() -> None:
    assert padding_mask(torch.tensor([[0, 1, 6, 6]]), pad=6).flatten().tolist() == [True, True, False, False]


def test_the_source_mask_hides_end_marks_that_are_not_read_but_no_source_is_empty() -> None:
    assert torch.equal(source_mask(IDS, PAD, None), padding_mask(IDS, PAD))
    ids = torch.tensor([[5, 7, 9, 3], [4, 3, PAD, PAD], [3, PAD, PAD, PAD]])
    expected = [[True, True, True, False], [True, False, False, False], [True, False, False, False]]
    assert source_mask(ids, PAD, 3)[:, 0, 0].tolist() == expected


def test_the_causal_mask_shows_each_query_its_own_position_and_those_before() -> None:
    mask = causal_mask(7)
    assert mask.shape == (1, 1, 7, 7)
    assert mask.dtype == torch.bool
    for query in range(7):
        for key in range(7):
            assert bool(mask[0, 0, query, key]) == (key <= query)


def test_real_tokens_are_numbered_from_zero_with_padding_at_any_position() -> None:
    positions = position_ids(padding_mask(IDS, PAD))
    assert positions.dtype == torch.int64
    for ids, row in zip(IDS.tolist(), positions.tolist(), strict=True):
        real = [position for token, position in zip(ids, row, strict=True) if token != PAD]
        assert real == list(range(len(real)))


def test_padding_has_a_position_inside_the_table() -> None:
    positions = position_ids(padding_mask(IDS, PAD))
    assert int(positions.min()) >= 0
    assert int(positions.max()) < IDS.size(1)
