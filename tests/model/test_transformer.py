"""The base class of the models."""

from __future__ import annotations

import pytest
import torch

from manyheads.config.schema import ModelConfig
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_no_model_is_made_under_another_default_dtype_of_torch(dtype: torch.dtype) -> None:
    config = ModelConfig(d_model=8, d_ff=12, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    torch.set_default_dtype(dtype)
    try:
        with pytest.raises(UsageError, match=rf"the default dtype of torch is {dtype}, and models"):
            EncoderDecoder(config, 11, 11)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in EncoderDecoder(config, 11, 11).parameters()} == {torch.float32}
