"""The floating-point operations of training, compared with torch's own counter."""

from __future__ import annotations

import pytest
import torch
from tests.tolerances import approx
from torch.utils.flop_counter import FlopCounterMode

from manyheads.config.schema import ModelConfig
from manyheads.data.batch import make_batch
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.objective import translation_loss
from manyheads.training.precision import flops_per_target_token, product_ceiling

B, S, T, V = 3, 11, 7, 23


def make_model(**settings: object) -> EncoderDecoder:
    config = {
        "d_model": 16,
        "d_ff": 20,
        "num_heads": 2,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "dropout": 0,
    }
    return EncoderDecoder(ModelConfig.model_validate(config | settings), V, V)


@pytest.mark.parametrize("settings", [{}, {"activation": "swiglu", "bias": False}, {"tied_embeddings": "none"}])
def test_the_flops_per_token_are_those_that_torch_counts_for_products_with_weights(
    settings: dict[str, object],
) -> None:
    """The keys and values of the cross-attention are corrected for the length of the source."""
    model = make_model(**settings)
    batch = make_batch([[5] * (S - 1)] * B, [[6] * (T - 1)] * B, pad=1, bos=2, eos=3)
    with FlopCounterMode(display=False) as counter:
        translation_loss(model, batch, 0.1)[0].backward()
    counted = counter.get_flop_counts()["Global"]
    products = sum(flops for op, flops in counted.items() if str(op) in ("aten.mm", "aten.addmm"))
    cross = 3 * 2 * 16 * 16  # layers, keys and values
    expected = B * T * flops_per_target_token(model, S, T) + 6 * B * (S - T) * cross
    assert products == approx(expected, dtype=torch.float64)


def test_the_measured_ceiling_of_a_matrix_product_is_plausible() -> None:
    found = product_ceiling(torch.device("cpu"), "fp32", seconds=0.05)
    assert 1e8 < found < 1e14
