"""A cache is found by the names of arguments and by what is returned, and its rows are reordered."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_doctor.caching import _begin, _makers, _returned_cache, _role_with_cache, reorder_rows
from transformer_doctor.errors import UsageError
from transformer_doctor.signatures import role_of

LOGITS, LOSS, KEYS = torch.zeros(3, 5, 23), torch.zeros(()), (torch.zeros(3, 2, 5, 8),)
Output = namedtuple("Output", "logits past_key_values attentions")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("cache", "cache"), ("past_key_values", "cache"), ("layer_past", "cache"), ("incremental_state", "cache"),
        ("mems", "cache"), ("num_layers", "unknown"), ("start_pos", "first"), ("cur_step", "first"),
        ("kv", "cache"), ("past_len", "first"), ("use_cache", "on"), ("return_kv_cache", "on"),
        ("is_training", "flag"), ("position_ids", "positions"), ("cache_position", "positions"),
        ("attention_mask", "target mask"),
    ],
)  # fmt: skip
def test_the_role_of_an_argument_in_a_call_with_a_cache_is_inferred_from_its_name(name: str, role: str) -> None:
    assert _role_with_cache(name, role_of(name, ("target",))) == role


@pytest.mark.parametrize(
    ("output", "cache"),
    [
        ((LOGITS, KEYS), KEYS),
        ((LOGITS, LOSS, KEYS), KEYS),
        ((LOGITS, None), "given"),
        (LOGITS, "given"),
        ({"loss": LOSS, "presents": KEYS, "attentions": [LOGITS]}, KEYS),
        (Output(LOGITS, KEYS, [LOGITS]), KEYS),
    ],
)
def test_the_cache_in_an_output_is_a_field_of_its_name_or_the_last_value(output: Any, cache: Any) -> None:
    assert _returned_cache(output, "given") is cache


def test_rows_are_selected_in_every_tensor_of_a_cache_and_numbers_are_kept() -> None:
    order, keys = torch.tensor([2, 0, 0]), torch.arange(3 * 4).view(3, 4)
    cache = {"layers": [(keys, keys.t())], "length": 4}
    moved = reorder_rows(None, cache, order)
    assert torch.equal(moved["layers"][0][0], keys[order])
    assert torch.equal(moved["layers"][0][1], keys.t()[:, order])
    assert moved["length"] == 4


@pytest.mark.parametrize("cache", [None, object(), torch.zeros(3, 3)])
def test_a_cache_whose_rows_are_not_known_is_not_reordered(cache: Any) -> None:
    with pytest.raises(UsageError, match="not known"):
        reorder_rows(None, cache, torch.tensor([2, 0, 0]))


class Owner:
    def _reorder_cache(self, past: Tensor, beam_idx: Tensor) -> Tensor:
        return past[beam_idx] + 1

    def init_cache(self, batch_size: int, max_len: int) -> tuple[int, int]:
        return batch_size, max_len

    def make_mask(self) -> None:
        raise AssertionError


def test_the_method_of_a_model_reorders_its_cache_and_another_makes_it() -> None:
    assert reorder_rows(Owner(), torch.arange(2), torch.tensor([1, 0])).tolist() == [2, 1]
    assert [make() for make in _makers(Owner())] == [(16, 16)]


class Resetting:
    cleared = 0

    def reset_kv_cache(self) -> None:
        self.cleared += 1

    def reset_parameters(self) -> None:
        raise AssertionError

    def clear_cache_of(self, row: int) -> None:
        raise AssertionError


def test_the_method_of_a_model_that_clears_its_cache_begins_a_text() -> None:
    owner = Resetting()
    assert _begin(owner, lambda: "cache") == "cache"
    assert owner.cleared == 1
