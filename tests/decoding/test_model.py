"""Weights packed for decoding: every precision compared with the plain linear layer, and weights that change."""

from __future__ import annotations

import pytest
import torch
from tests.model.samples import BOS, PAD, TARGET_SIZE, random_ids, scrambled_model
from tests.tolerances import assert_close, tolerance
from torch import Tensor

from manyheads.decoding.linear import InferenceLinear
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.prepare import pack
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.inference.native.weights import TorchPrecision
from manyheads.model.encoder_decoder import EncoderDecoder

# Largest difference of a log-probability in three steps of a small model, whose logits are up to 10.
TOLERANCES: dict[TorchPrecision, float] = {"fp32": tolerance(8.0), "bf16": 0.3}


def small_model(**changes: object) -> EncoderDecoder:
    """Return a model with D = 64 in 2 heads, fp32: widths that are no power of two."""
    return scrambled_model(d_model=64, num_heads=2, d_ff=96, **changes).float()


def log_probs_of_three_steps(model: EncoderDecoder | InferenceModel, rows: int, size: int) -> Tensor:
    """Return the log-probabilities of three steps, between which the rows of a beam are reordered."""
    source = random_ids(rows, 7, size)
    source[0, 5:] = PAD
    stepper = EncoderDecoderStepper(model, source)
    found = [stepper.step(torch.full((rows,), BOS))]
    stepper.select(torch.arange(rows).repeat_interleave(2))
    for token in (7, 11):
        found.append(stepper.step(torch.full((2 * rows,), token)))
        stepper.select(torch.arange(2 * rows).view(-1, 2).flip(1).flatten())
    return torch.cat(found)


@torch.inference_mode()
@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("rows", [1, 5])
def test_a_packed_model_gives_the_log_probabilities_of_the_model(precision, positions, rows) -> None:
    model = small_model(positions=positions)
    right = log_probs_of_three_steps(model, rows, TARGET_SIZE)
    found = log_probs_of_three_steps(pack(model, precision), rows, TARGET_SIZE)
    difference = (found - right).abs()
    assert found.dtype == torch.float32
    assert float(difference.max()) < TOLERANCES[precision]
    if precision != "fp32":
        assert float(difference.max()) > 1e-4, "the weights are rounded"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 37])
def test_outputs_are_those_of_a_linear_layer_with_rounded_weights(rows, bias) -> None:
    weight, offset = torch.randn(96, 64) * torch.logspace(-2, 1, 96)[:, None], torch.randn(96) if bias else None
    x = torch.randn(rows, 64)
    for rounding in (None, torch.bfloat16):
        held = weight if rounding is None else weight.to(rounding).float()
        found = InferenceLinear(weight, offset, torch.float32, rounding)(x)
        torch.testing.assert_close(found, torch.nn.functional.linear(x, held, offset))
    half = InferenceLinear(weight, offset, torch.bfloat16)(x.bfloat16())
    assert half.dtype == torch.bfloat16
    scale = weight.abs().amax(1)
    right = torch.nn.functional.linear(x, weight, offset)
    assert ((half.float() - right).abs() < 0.3 * scale + 2**-5 * right.abs()).all()


def test_matrices_in_bf16_have_8_significant_bits() -> None:
    weight = torch.randn(96, 64) * torch.logspace(-2, 1, 96)[:, None]
    rounded = InferenceLinear(weight, None, torch.float32, torch.bfloat16).weight
    assert rounded.dtype == torch.float32
    assert bool(((rounded - weight).abs() <= weight.abs() * 2**-8).all())
    assert not torch.equal(rounded, weight)


@torch.no_grad()
def test_a_packed_model_notices_that_weights_have_changed() -> None:
    model = small_model()
    packed = pack(model)
    assert packed.weights_unchanged()
    model(random_ids(2, 5, TARGET_SIZE), random_ids(2, 5, TARGET_SIZE))
    assert packed.weights_unchanged()
    model.output.bias[3] += 1
    assert not packed.weights_unchanged()
    assert pack(model).weights_unchanged()
    before = pack(model)
    model.output.bias.data = model.output.bias.data.clone()
    assert not before.weights_unchanged()


@torch.inference_mode()
@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_embeddings_with_types_and_a_norm_are_those_of_the_model(positions) -> None:
    model = scrambled_model(positions=positions, token_types=2, embedding_norm=True, num_decoder_layers=1)
    source, target = random_ids(3, 7, TARGET_SIZE), random_ids(3, 5, TARGET_SIZE)
    stepper = EncoderDecoderStepper(model, source)
    found = torch.stack([stepper.step(tokens) for tokens in target.unbind(1)], 1)
    right = model(source, target).log_softmax(-1)
    assert_close(found, right)


@torch.inference_mode()
def test_steps_use_no_dropout_in_either_mode_of_the_model() -> None:
    model = small_model(dropout=0.5, word_dropout=0.3)
    right = log_probs_of_three_steps(model, 3, TARGET_SIZE)
    torch.testing.assert_close(log_probs_of_three_steps(model.train(), 3, TARGET_SIZE), right)
