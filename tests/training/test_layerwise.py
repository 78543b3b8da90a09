"""Freezing, gradual unfreezing and lower learning rates for lower layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tolerances import within
from torch import Tensor

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.errors import ConfigError
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.training.layerwise import LayerwiseLearningRate, _depths, freeze
from manyheads.training.optimizer import build_optimizer

CPU = torch.device("cpu")
SHAPE = ModelConfig(
    d_model=8, d_ff=16, num_heads=2, num_encoder_layers=3, num_decoder_layers=2, norm="post", dropout=0
)


def make_classifier() -> TextClassifier:
    torch.manual_seed(1)
    return TextClassifier(SHAPE, size=11, classes=3)


def weights(model: Transformer) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def trained_depths(model: TextClassifier, steps: int, **settings: Any) -> list[set[int]]:
    """Train on random texts; return the depths of the parameters that each update changed."""
    config = TrainingConfig(**({"learning_rate": 0.01, "optimizer": "adamw", "weight_decay": 0.1} | settings))
    freeze(model, config)
    layerwise = LayerwiseLearningRate(model, config)
    optimizer = build_optimizer(model, config, CPU, layerwise.depth_of)
    depth_of = {name: _depths(model)[parameter] for name, parameter in model.named_parameters()}
    moved = []
    for step in range(1, steps + 1):
        before = weights(model)
        ids = torch.randint(2, 11, (5, 7), generator=torch.Generator().manual_seed(step))
        torch.nn.functional.cross_entropy(model(ids), ids[:, 0] % 3).backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * layerwise.factor(group, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        moved.append({depth_of[name] for name, tensor in weights(model).items() if not tensor.equal(before[name])})
    return moved


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


@pytest.mark.parametrize(("frozen", "expected"), [(0, {1, 2, 3, 4}), (2, {3, 4}), (3, {4})])
def test_frozen_layers_stay_as_they_are(frozen: int, expected: set[int]) -> None:
    assert trained_depths(make_classifier(), 2, frozen_layers=frozen) == [expected] * 2


def test_one_more_layer_is_unfrozen_every_given_number_of_updates() -> None:
    moved = trained_depths(make_classifier(), 9, unfreeze_every=2)
    assert moved == [{4}] * 2 + [{3, 4}] * 2 + [{2, 3, 4}] * 2 + [{1, 2, 3, 4}] * 2 + [{0, 1, 2, 3, 4}]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_unfreezing_works_with_every_optimiser(optimizer: str) -> None:
    moved = trained_depths(make_classifier(), 3, unfreeze_every=1, optimizer=optimizer)
    assert moved == [{4}, {3, 4}, {2, 3, 4}]


def test_lower_layers_have_lower_learning_rates() -> None:
    """The first step of Adam is as long as the learning rate, whatever the gradient."""
    model = make_classifier()
    before = weights(model)
    trained_depths(model, 1, layer_decay=0.5, weight_decay=0, epsilon=1e-12)
    steps = {name: (tensor - before[name]).abs().max().item() for name, tensor in weights(model).items()}
    assert steps["output.weight"] == within(0.01, 1e-5)
    for layer in range(3):
        name = f"encoder_layers.{layer}.feed_forward.expand.weight"
        assert steps[name] == within(0.01 * 0.5 ** (3 - layer), 1e-5)
    assert steps["embedding.tokens.weight"] == within(0.01 * 0.5**4, 1e-6)


def test_all_layers_have_the_same_rate_by_default() -> None:
    layerwise = LayerwiseLearningRate(make_classifier(), TrainingConfig())
    assert layerwise.depth_of is None
    assert layerwise.factor({"factor": 3.0}, 1) == 3.0


def test_more_frozen_layers_than_there_are_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.frozen_layers = 4, but the model has 3"):
        freeze(make_classifier(), TrainingConfig(frozen_layers=4))


def test_freezing_all_parameters_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing after its layers"):
        freeze(DecoderOnly(SHAPE, 11), TrainingConfig(frozen_layers=2))
