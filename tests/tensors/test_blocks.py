"""Blocks of a stream of tokens: none is left out, boundaries move, and the order depends on seed and epoch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from manyheads.tensors.blocks import BlockBatch, BlockSampler, blank_blocks, make_blocks

STREAM = np.arange(100, 201, dtype=np.int32)  # 101 tokens, all different


@pytest.mark.parametrize(("block", "rows"), [(7, 4), (10, 3), (101, 2), (100, 1), (1, 13)])
def test_every_token_is_predicted_in_an_epoch_and_few_of_them_twice(block: int, rows: int) -> None:
    sampler = BlockSampler(len(STREAM), block=block, rows=rows, seed=1)
    for number in range(5):
        updates = sampler.epoch(number)
        assert len(updates) == sampler.updates
        assert max(map(len, updates)) <= rows
        assert max(map(len, updates)) - min(map(len, updates)) <= 1
        batches = [make_blocks(STREAM, starts, block) for starts in updates]
        seen = Counter(token for batch in batches for token in batch.labels.flatten().tolist())
        assert set(seen) == set(STREAM.tolist())
        assert sum(seen.values()) - len(seen) < block
        assert sum(batch.target_tokens for batch in batches) == sum(seen.values())


def test_labels_are_the_next_tokens_and_the_stream_wraps_around() -> None:
    batch = make_blocks(STREAM, np.array([0, 95]), 7)
    assert batch.ids.tolist() == [list(range(100, 107)), [195, 196, 197, 198, 199, 200, 100]]
    assert batch.labels.tolist() == [list(range(101, 108)), [196, 197, 198, 199, 200, 100, 101]]
    assert (batch.examples, batch.num_positions, batch.target_tokens, batch.source_tokens) == (2, 14, 14, 0)


def test_the_edges_of_blocks_move_from_epoch_to_epoch() -> None:
    sampler = BlockSampler(len(STREAM), block=10, rows=3, seed=1)
    boundaries = {int(start) % 10 for number in range(40) for start in np.concatenate(sampler.epoch(number))[:1]}
    assert len(boundaries) > 5


def test_an_epoch_depends_on_seed_and_number_alone() -> None:
    def plan(seed: int, number: int) -> list[list[int]]:
        return [starts.tolist() for starts in BlockSampler(999, block=8, rows=5, seed=seed).epoch(number)]

    assert plan(3, 2) == plan(3, 2)
    assert plan(3, 2) != plan(3, 1)
    assert plan(3, 2) != plan(4, 2)


def test_halves_hold_the_same_blocks() -> None:
    batch = make_blocks(STREAM, np.array([3, 50, 80]), 5)
    first, second = batch.halves()
    assert torch.equal(torch.cat([first.ids, second.ids]), batch.ids)
    assert torch.equal(torch.cat([first.labels, second.labels]), batch.labels)
    assert [first.examples, second.examples] == [1, 2]
    assert first.halves() == [first]


def test_a_blank_batch_predicts_nothing() -> None:
    blank = blank_blocks(1)
    assert isinstance(blank, BlockBatch)
    assert (blank.target_tokens, blank.examples, blank.ids.shape) == (0, 1, (1, 1))
