"""Captured attention weights are those that the model used, and capturing changes no output."""

from __future__ import annotations

import pytest
import torch

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
