"""Sublayers, feed-forward and layers against their formulas. Whole layers also meet torch's in test_peers.py."""

from __future__ import annotations

import math

import pytest
import torch
from tests.model.samples import make_config, scramble
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.dropout import Dropout
from manyheads.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    PostNorm,
    PreNorm,
    build_sublayer,
)
from manyheads.model.masks import causal_mask
from manyheads.model.positions import RotaryPositions

D, F = 30, 37


def norm(x: Tensor, module: nn.LayerNorm, epsilon: float) -> Tensor:
    """Layer normalisation, written out."""
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return centred / deviation * module.weight + module.bias


@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_the_norm_stands_before_or_after_the_sublayer_and_the_residual_around_it(kind, epsilon) -> None:
    around = build_sublayer(make_config(norm=kind, norm_epsilon=epsilon)).double()
    scramble(around)
    x = torch.randn(2, 5, D, dtype=torch.float64)
    if kind == "pre":
        right = x + torch.tanh(norm(x, around.norm, epsilon))
    else:
        right = norm(x + torch.tanh(x), around.norm, epsilon)
    torch.testing.assert_close(around(x, torch.tanh), right)


def test_dropout_never_touches_the_residual_stream() -> None:
    """It is laid on the sublayer's output before that is added (section 5.4)."""
    x = torch.randn(64, D)
    added = PreNorm(D, 0.5, 1e-5)(x, torch.ones_like) - x
    assert set((added * 2).round().div(2).unique().tolist()) == {0.0, 2.0}
    normed = PostNorm(D, 0.5, 1e-5)(x, torch.zeros_like)
    torch.testing.assert_close(normed, functional.layer_norm(x, (D,)))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_the_feed_forward_layer_is_its_formula(activation, bias) -> None:
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


def test_the_feed_forward_layer_knows_one_position_at_a_time() -> None:
    layer, x = FeedForward(make_config()).double(), torch.randn(2, 5, D, dtype=torch.float64)
    apart = torch.stack([layer(x[:, place]) for place in range(5)], 1)
    torch.testing.assert_close(layer(x), apart)


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_each_feed_forward_matrix_starts_with_a_spread_of_its_own(activation) -> None:
    """Xavier: uniform within sqrt(6 / (D + F)), although swiglu's two stand in one."""
    layer = FeedForward(make_config(activation=activation, d_model=60, d_ff=90))
    bound = math.sqrt(6 / 150)
    for matrix in (*layer.expand.weight.detach().split(90), layer.contract.weight.detach()):
        assert 0.98 * bound < float(matrix.abs().max()) <= bound
        assert abs(float(matrix.std()) * math.sqrt(3) / bound - 1) < 0.05


def test_without_biases_only_the_norms_have_any() -> None:
    layer = DecoderLayer(make_config(bias=False, activation="swiglu"))
    biased = {name for name, _ in layer.named_parameters() if name.endswith("bias")}
    assert biased == {
        "around_self_attention.norm.bias",
        "around_cross_attention.norm.bias",
        "around_feed_forward.norm.bias",
    }


def test_each_kind_of_dropout_goes_to_its_place() -> None:
    layer = DecoderLayer(
        make_config(dropout=0.1, feed_forward_dropout=0.2, attention_dropout=0.3, layer_dropout=0.4)
    )
    assert layer.self_attention.dropout == layer.cross_attention.dropout == 0.3
    found = {name: part.probability for name, part in layer.named_modules() if isinstance(part, Dropout)}
    around = ("around_self_attention", "around_cross_attention", "around_feed_forward")
    expected = {f"{name}.dropout": 0.1 for name in around} | {f"{name}.layer_dropout": 0.4 for name in around}
    assert found == {"feed_forward.dropout": 0.2} | expected


def test_the_dropout_inside_the_feed_forward_layer_comes_after_the_activation() -> None:
    layer = FeedForward(make_config(activation="gelu", feed_forward_dropout=0.5))
    nn.init.zeros_(layer.expand.weight)
    nn.init.ones_(layer.expand.bias)
    given: list[Tensor] = []
    layer.contract.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    layer(torch.randn(7, D))
    gelu_of_one = float(functional.gelu(torch.tensor(1.0)))
    assert {round(value, 5) for value in given[0].unique().tolist()} == {0.0, round(2 * gelu_of_one, 5)}


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_a_layer_is_its_sublayers_one_after_the_other(kind) -> None:
    """Self-attention, cross-attention, feed-forward: each with its own norm, weights and mask."""
    config = make_config(norm=kind)
    encoder, decoder = EncoderLayer(config).double(), DecoderLayer(config).double()
    scramble(encoder)
    scramble(decoder)
    x, memory = torch.randn(2, 5, D, dtype=torch.float64), torch.randn(2, 7, D, dtype=torch.float64)
    sees = torch.rand(2, 1, 1, 7) < 0.6
    sees[..., 0] = True
    encoded = encoder(memory, sees)
    right = encoder.around_attention(memory, lambda y: encoder.self_attention(y, y, sees))
    right = encoder.around_feed_forward(right, encoder.feed_forward)
    torch.testing.assert_close(encoded, right)

    found = decoder(x, causal_mask(5), decoder.keys_values(memory), sees)
    right = decoder.around_self_attention(x, lambda y: decoder.self_attention(y, y, causal_mask(5)))
    right = decoder.around_cross_attention(right, lambda y: decoder.cross_attention(y, memory, sees))
    right = decoder.around_feed_forward(right, decoder.feed_forward)
    torch.testing.assert_close(found, right)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_turned_by_rotary_positions_a_layer_knows_distances_alone(kind) -> None:
    """Queries and keys turn alike and values do not: moving a whole text changes nothing, its order does."""
    config, rotary = make_config(), RotaryPositions(10)
    layer = EncoderLayer(config).double() if kind == "encoder" else DecoderLayer(config).double()
    scramble(layer)
    x, memory = torch.randn(2, 7, D, dtype=torch.float64), torch.randn(2, 5, D, dtype=torch.float64)

    def output(positions: Tensor) -> Tensor:
        turns = rotary(positions[None])
        if isinstance(layer, EncoderLayer):
            return layer(x, torch.ones(2, 1, 1, 7, dtype=torch.bool), turns)
        sees = torch.ones(2, 1, 1, 5, dtype=torch.bool)
        return layer(x, causal_mask(7), layer.keys_values(memory), sees, turns)

    there = output(torch.arange(7))
    torch.testing.assert_close(output(torch.arange(7) + 29), there, rtol=0, atol=1e-4)
    assert float((output(torch.arange(7).flip(0)) - there).abs().max()) > 0.1


def test_a_sentence_can_do_without_a_sublayer() -> None:
    """Layer dropout leaves a sublayer out for some sentences, and scales it for the others."""
    torch.manual_seed(2)
    x = torch.randn(64, 3, D)
    added = (PreNorm(D, 0.0, 1e-5, layer_dropout=0.5)(x, torch.ones_like) - x).round(decimals=4)
    for sentence in added:
        assert sentence.unique().tolist() in ([0.0], [2.0])
    assert {0.0, 2.0} == set(added.unique().tolist())
