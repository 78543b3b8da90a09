"""Masks, in which True means "may attend", and positions of padding; test_encoder_decoder.py has whole models."""

from __future__ import annotations

import torch
from tests.model.samples import PAD

from manyheads.model.masks import padding_mask, position_ids, source_mask

IDS = torch.tensor([[5, 7, 9, 4, 3], [PAD, PAD, 8, 6, 3], [4, PAD, 6, PAD, 3], [9, 3, PAD, PAD, PAD], [PAD] * 5])


def test_the_padding_mask_uses_the_id_of_the_vocabulary() -> None:
    assert padding_mask(torch.tensor([[0, 1, 6, 6]]), pad=6).flatten().tolist() == [True, True, False, False]


def test_the_source_mask_hides_end_marks_that_are_not_read_but_no_source_is_empty() -> None:
    assert torch.equal(source_mask(IDS, PAD, None), padding_mask(IDS, PAD))
    ids = torch.tensor([[5, 7, 9, 3], [4, 3, PAD, PAD], [3, PAD, PAD, PAD]])
    expected = [[True, True, True, False], [True, False, False, False], [True, False, False, False]]
    assert source_mask(ids, PAD, 3)[:, 0, 0].tolist() == expected


def test_padding_has_a_position_inside_the_table() -> None:
    positions = position_ids(padding_mask(IDS, PAD))
    assert int(positions.min()) >= 0
    assert int(positions.max()) < IDS.size(1)
