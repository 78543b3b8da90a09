"""Lower learning rates for lower layers, and what LoRA trains."""

from __future__ import annotations

import torch
from tests.tolerances import within

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.training.layerwise import _depths, by_factor, freeze_for_lora, layer_factors
from manyheads.training.optimizer import build_optimizer

SHAPE = ModelConfig(
    d_model=8, d_ff=16, num_heads=2, num_encoder_layers=3, num_decoder_layers=2, norm="post", dropout=0
)


def make_classifier() -> TextClassifier:
    torch.manual_seed(1)
    return TextClassifier(SHAPE, size=11, classes=3)


def test_depths_increase_from_the_embedding_to_the_head() -> None:
    model = make_classifier()
    found = {name: _depths(model)[parameter] for name, parameter in model.named_parameters()}
    assert {depth for name, depth in found.items() if name.startswith("embedding.")} == {0}
    for layer in range(3):
        own = {depth for name, depth in found.items() if name.startswith(f"encoder_layers.{layer}.")}
        assert own == {layer + 1}
    assert {found[name] for name in ("pooler.weight", "output.bias")} == {4}


def test_a_decoder_is_above_its_encoder_and_a_tied_output_has_the_depth_of_the_embedding() -> None:
    model = EncoderDecoder(SHAPE, 11, 11)
    found = {name: _depths(model)[parameter] for name, parameter in model.named_parameters()}
    assert {depth for name, depth in found.items() if name.startswith("decoder_layers.1.")} == {5}
    assert _depths(model)[model.output.weight] == 0


def test_lower_layers_have_lower_learning_rates() -> None:
    """The first step of Adam is as long as the learning rate, whatever the gradient."""
    model = make_classifier()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    config = TrainingConfig(optimizer="adamw", epsilon=1e-12)
    optimizer = build_optimizer(model, config, torch.device("cpu"), layer_factors(model, 0.5))
    ids = torch.randint(2, 11, (5, 7), generator=torch.Generator().manual_seed(1))
    torch.nn.functional.cross_entropy(model(ids), ids[:, 0] % 3).backward()
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * group["factor"]
    optimizer.step()
    steps = {name: (new.detach() - before[name]).abs().max().item() for name, new in model.named_parameters()}
    assert steps["output.weight"] == within(0.01, 1e-5)
    for layer in range(3):
        name = f"encoder_layers.{layer}.feed_forward.expand.weight"
        assert steps[name] == within(0.01 * 0.5 ** (3 - layer), 1e-5)
    assert steps["embedding.tokens.weight"] == within(0.01 * 0.5**4, 1e-6)


def test_a_layer_factor_multiplies_that_of_the_optimiser() -> None:
    model = make_classifier()
    head = model.output.weight
    assert [group["factor"] for group in by_factor([{"params": [head], "factor": 3.0}], {head: 0.5})] == [1.5]


def test_all_layers_have_the_same_rate_by_default() -> None:
    assert layer_factors(make_classifier(), 1.0) is None


def test_lora_trains_the_matrices_of_the_layers_and_the_head() -> None:
    model = make_classifier()
    freeze_for_lora(model)
    for name, parameter in model.named_parameters():
        in_layers = name.startswith("encoder_layers.")
        assert parameter.requires_grad == (parameter.ndim == 2 if in_layers else not name.startswith("embedding."))
