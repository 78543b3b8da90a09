"""A model is called in the form that was found, and its scores are returned with the batch first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from specimens.call_styles import EncodeDecode
from transformer_doctor.calling import CallForm, callee_of, caller

SIDES = ("source", "target")
SOURCE, TARGET = torch.tensor([[3, 4, 0], [5, 6, 7]]), torch.tensor([[1, 5], [1, 6]])


def call_model(function: Any, form: CallForm = CallForm()) -> Tensor:  # noqa: B008
    return caller(callee_of(function, SIDES), SIDES, form, 0, None)(SOURCE, TARGET)


def scores(batch: int, length: int) -> Tensor:
    return torch.zeros(batch, length, 7)


def test_masks_and_lengths_without_a_default_are_made() -> None:
    def model(src: Tensor, tgt: Tensor, src_mask: Tensor, src_lengths: Tensor, step: int = 3) -> Tensor:
        assert src_lengths.tolist() == [2, 3]
        assert src_mask.shape == (2, 1, 1, 3)
        return scores(*tgt.shape)

    assert call_model(model).shape == (2, 2, 7)


def test_a_mapping_batch_makes_its_entries_on_access() -> None:
    def model(batch: Any) -> Tensor:
        assert torch.equal(batch["src"], SOURCE)
        assert torch.equal(batch.tgt_ids, TARGET)
        assert batch.get("labels") is None
        assert "src_mask" in batch
        assert "table" not in batch
        assert not hasattr(batch, "table")
        return scores(*batch["target"].shape)

    assert call_model(model, CallForm(container="mapping")).shape == (2, 2, 7)


def test_encode_and_decode_may_share_argument_names() -> None:
    class Pair(nn.Module):
        def encode(self, x: Tensor) -> Tensor:
            assert torch.equal(x, SOURCE)
            return x[..., None].float()

        def decode(self, x: Tensor, memory: Tensor) -> Tensor:
            assert torch.equal(x, TARGET)
            return memory.sum(1, keepdim=True).expand(-1, x.size(1), 7)

    assert call_model(Pair()).shape == (2, 2, 7)
    names = [parameter.name for parameter, _ in callee_of(EncodeDecode(), SIDES).arguments or ()]
    assert names == ["src", "src_mask", "tgt", "tgt_mask"]
