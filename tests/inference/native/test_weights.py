"""Weights packed for the C code: every number in its panel, rounded as torch rounds, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.model.samples import make_config, scrambled_model

from manyheads.errors import UsageError
from manyheads.inference.native.weights import (
    PackedWeights,
    WeightsError,
    _aligned_zeros,
    _bfloat16_bits,
    parse_precision,
)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.00390625, 1.01171875, 3.3e38, -3.4028235e38, 1e-40, np.inf, -np.inf, np.nan]


def matrix(rows: int = 97, columns: int = 13) -> np.ndarray:
    rng = np.random.default_rng(5)
    return (rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-3, 3, (rows, 1))).astype(np.float32)


@pytest.mark.parametrize("outputs", [1, 31, 32, 97])
def test_each_output_is_in_its_panel_and_the_last_panel_ends_with_zeros(outputs) -> None:
    weight = matrix(outputs)
    packed = PackedWeights({}, make_config(), "fp32", 32).panels(weight)
    assert packed.shape == (-(-outputs // 32), 13, 32)
    unpacked = packed.transpose(0, 2, 1).reshape(-1, 13)
    assert np.array_equal(unpacked[:outputs], weight)
    assert not unpacked[outputs:].any()


def test_packed_weights_begin_at_a_cache_line() -> None:
    for size in (1, 3, 1000):
        array = _aligned_zeros((size, 5), np.dtype(np.uint16))
        assert array.ctypes.data % 64 == 0
        assert array.shape == (size, 5)


def test_bfloat16_is_that_of_torch_also_for_ties() -> None:
    weight = np.concatenate([matrix().ravel(), np.float32(SPECIAL)])
    right = torch.from_numpy(weight).bfloat16()
    found = torch.from_numpy(_bfloat16_bits(weight).astype(np.int32) << 16).view(torch.float32)
    assert torch.equal(found[:-1], right[:-1].float())
    assert found[-1].isnan()


@pytest.mark.parametrize("precision", ["fp16", ""])
def test_an_unknown_precision_is_refused(precision) -> None:
    assert parse_precision("bf16") == "bf16"
    with pytest.raises(UsageError, match=rf'"{precision}".*fp32, bf16, int8'):
        parse_precision(precision)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (None, "project_in.weight is missing"),
        (np.zeros((3, 3), dtype=np.float32), r"project_in.weight is float32 \(3, 3\), not float32 \(90, 30\)"),
        (np.zeros((90, 30)), r"project_in.weight is float64 \(90, 30\)"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(changed, message) -> None:
    model = scrambled_model().float()
    tensors = {name: weight.detach().numpy() for name, weight in model.named_parameters(remove_duplicate=False)}
    del tensors["decoder_layers.1.cross_attention.project_in.weight"]
    if changed is not None:
        tensors["decoder_layers.1.cross_attention.project_in.weight"] = changed
    with pytest.raises(WeightsError, match=message):
        PackedWeights(tensors, model.config, "fp32", 32).decoder(model.output.out_features)
