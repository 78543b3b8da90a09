"""Feed-forward, dropout and rotary positions of layers; whole layers are compared with torch in test_peers.py."""

from __future__ import annotations

import math

import pytest
import torch
from tests.model.samples import make_config, scramble
from tests.tolerances import assert_close
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.dropout import Dropout
from manyheads.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    PostNorm,
    PreNorm,
)
from manyheads.model.masks import causal_mask
from manyheads.model.positions import RotaryPositions

D, F = 30, 37


def norm(x: Tensor, module: nn.LayerNorm, epsilon: float) -> Tensor:
    """Compute layer normalisation by its formula."""
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return centred / deviation * module.weight + module.bias


def test_dropout_is_not_applied_to_the_residual_stream() -> None:
    """Expect dropout of the sublayer's output before the sum (section 5.4)."""
    x = torch.randn(64, D)
    added = PreNorm(D, 0.5, 1e-5)(x, torch.ones_like) - x
    assert set((added * 2).round().div(2).unique().tolist()) == {0.0, 2.0}
    normed = PostNorm(D, 0.5, 1e-5)(x, torch.zeros_like)
    torch.testing.assert_close(normed, functional.layer_norm(x, (D,)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_the_feed_forward_layer_equals_its_formula(activation, bias) -> None:
    layer = FeedForward(make_config(activation=activation, bias=bias)).double()
    scramble(layer)
    x = torch.randn(2, 5, D, dtype=torch.float64)
    inner = x @ layer.expand.weight.t()
    if bias:
        inner = inner + layer.expand.bias
    if activation == "relu":
        inner = inner.clamp_min(0)
    elif activation == "gelu":
        inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    else:
        inner = inner[..., :F] / (1 + torch.exp(-inner[..., :F])) * inner[..., F:]
    right = inner @ layer.contract.weight.t()
    if bias:
        right = right + layer.contract.bias
    assert inner.size(-1) == F
    torch.testing.assert_close(layer(x), right)


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_each_feed_forward_matrix_is_initialized_like_a_separate_matrix(activation) -> None:
    """Expect Xavier, uniform within sqrt(6 / (D + F)), although the two matrices of swiglu are stored in one."""
    layer = FeedForward(make_config(activation=activation, d_model=60, d_ff=90))
    bound = math.sqrt(6 / 150)
    for matrix in (*layer.expand.weight.detach().split(90), layer.contract.weight.detach()):
        assert 0.98 * bound < float(matrix.abs().max()) <= bound
        assert abs(float(matrix.std()) * math.sqrt(3) / bound - 1) < 0.05


def test_only_the_norms_have_biases_when_biases_are_off() -> None:
    layer = DecoderLayer(make_config(bias=False, activation="swiglu"))
    biased = {name for name, _ in layer.named_parameters() if name.endswith("bias")}
    assert biased == {
        "around_self_attention.norm.bias",
        "around_cross_attention.norm.bias",
        "around_feed_forward.norm.bias",
    }


def test_each_kind_of_dropout_is_applied_in_its_module() -> None:
    layer = DecoderLayer(make_config(dropout=0.1, attention_dropout=0.3))
    assert layer.self_attention.dropout == layer.cross_attention.dropout == 0.3
    found = {name: module.probability for name, module in layer.named_modules() if isinstance(module, Dropout)}
    around = ("around_self_attention", "around_cross_attention", "around_feed_forward")
    assert found == {f"{name}.dropout": 0.1 for name in around}


@torch.no_grad()
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_layer_with_rotary_positions_depends_on_distances_alone(kind) -> None:
    """Shift all positions, which changes nothing, and reverse them, which does."""
    config, rotary = make_config(), RotaryPositions(10)
    layer = EncoderLayer(config).double() if kind == "encoder" else DecoderLayer(config).double()
    scramble(layer)
    x, memory = torch.randn(2, 7, D, dtype=torch.float64), torch.randn(2, 5, D, dtype=torch.float64)

    def output(positions: Tensor) -> Tensor:
        rotary_cos_sin = rotary(positions[None])
        if isinstance(layer, EncoderLayer):
            return layer(x, torch.ones(2, 1, 1, 7, dtype=torch.bool), rotary_cos_sin)
        mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
        return layer(x, causal_mask(7), layer.keys_values(memory), mask, rotary_cos_sin)

    expected = output(torch.arange(7))
    assert_close(output(torch.arange(7) + 29), expected, dtype=torch.float32)
    assert float((output(torch.arange(7).flip(0)) - expected).abs().max()) > 0.1
