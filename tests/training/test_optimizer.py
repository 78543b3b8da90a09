"""Adam, AdamW and Muon, and their state as named tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tolerances import assert_close
from tests.training.parts import weights
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

CPU = torch.device("cpu")


def make_model(seed: int = 1) -> nn.Module:
    """Return a model of three linear layers, two of which share their matrix, and a layer norm."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 5), nn.Linear(5, 7))
    model[3].weight = model[0].weight
    return model


def make_config(**settings: Any) -> TrainingConfig:
    return TrainingConfig(**({"learning_rate": 0.05, "betas": (0.7, 0.9), "epsilon": 1e-3} | settings))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """Make one update on random numbers."""
    rng = torch.Generator().manual_seed(seed)
    optimizer.zero_grad()
    model(torch.randn(11, 5, generator=rng)).square().mean().backward()
    optimizer.step()


def paper_adam(parameters: list[Tensor], gradients: list[list[Tensor]], config: TrainingConfig) -> list[Tensor]:
    """Return the parameters after algorithm 1 of Kingma & Ba (2015), in float64, with the decay in the gradient."""
    beta1, beta2 = config.betas
    found = []
    for index, start in enumerate(parameters):
        x, m, v = start.double(), 0.0, 0.0
        for t, row in enumerate(gradients, start=1):
            g = row[index].double() + config.weight_decay * x
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g.square()
            x = x - config.learning_rate * (m / (1 - beta1**t)) / ((v / (1 - beta2**t)).sqrt() + config.epsilon)
        found.append(x)
    return found


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_adam_is_the_algorithm_with_the_decay_in_every_gradient(decay: float) -> None:
    config = make_config(optimizer="adam", weight_decay=decay)
    model = make_model()
    rng = torch.Generator().manual_seed(4)
    parameters = list(model.parameters())
    start = [parameter.detach().clone() for parameter in parameters]
    gradients = [[torch.randn(p.shape, generator=rng) for p in parameters] for _ in range(4)]
    optimizer = build_optimizer(model, config, CPU)
    for row in gradients:
        for parameter, gradient in zip(parameters, row, strict=True):
            parameter.grad = gradient.clone()
        optimizer.step()
    for parameter, expected in zip(parameters, paper_adam(start, gradients, config), strict=True):
        assert_close(parameter, expected)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_decay_shrinks_matrices_and_leaves_vectors(kind: str) -> None:
    model = make_model()
    optimizer = build_optimizer(model, make_config(optimizer=kind, weight_decay=0.2), CPU)
    before = weights(model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, after in weights(model).items():
        factor = 1 - 0.05 * 0.2 if after.ndim > 1 else 1.0
        torch.testing.assert_close(after, before[name] * factor)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_every_parameter_is_in_one_group_of_the_optimizer(kind: str) -> None:
    model = make_model()
    optimizer = build_optimizer(model, make_config(optimizer=kind), CPU)
    trained = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(trained) == sorted({id(parameter) for parameter in model.parameters()})


def test_optimizer_tensors_are_named_by_parameter_and_moment() -> None:
    model = make_model()
    optimizer = build_optimizer(model, make_config(), CPU)
    assert optimizer_tensors(model, optimizer) == {}
    step(model, optimizer, 0)
    names = {name for name, _ in model.named_parameters()}
    assert set(optimizer_tensors(model, optimizer)) == {
        f"{name}.{moment}" for name in names for moment in ("exp_avg", "exp_avg_sq", "step")
    }


def test_a_restored_state_is_a_copy() -> None:
    model = make_model()
    optimizer = build_optimizer(model, make_config(), CPU)
    step(model, optimizer, 0)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(model, optimizer).items()}
    untouched = {name: tensor.clone() for name, tensor in saved.items()}
    other = make_model()
    restored = build_optimizer(other, make_config(), CPU)
    restore_optimizer(other, restored, saved)
    step(other, restored, 1)
    assert all(torch.equal(saved[name], untouched[name]) for name in saved)


def make_transformer(**settings: Any) -> EncoderDecoder:
    config = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    torch.manual_seed(3)
    return EncoderDecoder(ModelConfig.model_validate(config | settings), 11, 11)


@pytest.mark.parametrize("tied", ["all", "none"])
def test_muon_leaves_embeddings_and_vectors_to_adam(tied: str) -> None:
    """Every parameter of the model has the moments of exactly one of the two optimizers."""
    model = make_transformer(tied_embeddings=tied)
    optimizer = build_optimizer(model, make_config(optimizer="muon"), CPU)
    ids = torch.randint(4, 11, (3, 5))
    model(ids, ids).square().mean().backward()
    optimizer.step()
    moments: dict[str, set[str]] = {}
    for key in optimizer_tensors(model, optimizer):
        name, _, moment = key.rpartition(".")
        moments.setdefault(name, set()).add(moment)
    for name, parameter in model.named_parameters():
        hidden = "layers" in name and parameter.ndim == 2
        assert moments[name] == ({"momentum"} if hidden else {"exp_avg", "exp_avg_sq", "step"}), name
