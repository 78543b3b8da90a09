"""Captured attention weights are those that the model used, and capturing changes no output."""

from __future__ import annotations

import math

import pytest
import torch
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.inspection.capture import attention_maps
from manyheads.model.encoder_decoder import EncoderDecoder

SOURCE = torch.tensor([[5, 9, 4, 7, 3]])
TARGET = torch.tensor([[2, 6, 8, 5]])


@pytest.fixture
def model() -> EncoderDecoder:
    torch.manual_seed(3)
    config = ModelConfig(d_model=12, d_ff=20, num_heads=3, num_encoder_layers=2, num_decoder_layers=2)
    return EncoderDecoder(config, 11, 11).eval()


def test_attention_maps_exist_for_every_layer_head_and_kind(model: EncoderDecoder) -> None:
    maps = attention_maps(model, SOURCE, TARGET)
    assert [tuple(one.shape) for one in maps.encoder] == [(3, 5, 5)] * 2
    assert [tuple(one.shape) for one in maps.decoder] == [(3, 4, 4)] * 2
    assert [tuple(one.shape) for one in maps.cross] == [(3, 4, 5)] * 2


def test_weights_of_every_position_add_up_to_one_and_future_positions_get_none(model: EncoderDecoder) -> None:
    maps = attention_maps(model, SOURCE, TARGET)
    for weights in (*maps.encoder, *maps.decoder, *maps.cross):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
    for weights in maps.decoder:
        assert not weights.triu(1).any()
    assert maps.cross[0].std() > 0


@torch.no_grad()
def test_weights_equal_a_softmax_computed_by_hand(model: EncoderDecoder) -> None:
    memory, _ = model.encode(SOURCE)
    layer = model.decoder_layers[0]
    x = model.target_embedding(TARGET, torch.arange(4)[None], 4)
    keys_values = layer.cross_attention.keys_values(memory)
    normed = layer.around_self_attention.norm(x)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    x = x + layer.self_attention(normed, normed, causal)
    normed = layer.around_cross_attention.norm(x)
    query = layer.cross_attention.queries(normed)
    expected = torch.zeros(3, 4, 5)
    for head in range(3):
        for t in range(4):
            scores = [float(query[0, head, t] @ keys_values[0][0, head, s]) / math.sqrt(4) for s in range(5)]
            total = sum(math.exp(score) for score in scores)
            expected[head, t] = torch.tensor([math.exp(score) / total for score in scores])
    assert_close(attention_maps(model, SOURCE, TARGET).cross[0], expected)


def test_capturing_does_not_change_the_output(model: EncoderDecoder) -> None:
    seen: list[Tensor] = []
    handle = model.register_forward_hook(lambda module, inputs, output: seen.append(output))
    attention_maps(model, SOURCE, TARGET)
    handle.remove()
    with torch.inference_mode():
        assert torch.equal(seen[0], model(SOURCE, TARGET))
    assert all(layer.cross_attention.observer is None for layer in model.decoder_layers)
