"""LoRA: the update of each matrix is of low rank, and the model always holds the sum."""

from __future__ import annotations

import pytest
import torch
from tests.tolerances import assert_close
from tests.training.test_layerwise import make_classifier
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import TrainingConfig
from manyheads.model.encoder_only import TextClassifier
from manyheads.training.layerwise import freeze_for_lora
from manyheads.training.low_rank import LowRank
from manyheads.training.optimizer import build_optimizer, optimizer_tensors

CPU = torch.device("cpu")
ADAM = {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1}


class AutogradLora(nn.Module):
    """A linear layer as of Hu et al., x W^T + s (x V^T) U^T, with gradients by autograd."""

    def __init__(self, weight: Tensor, down: Tensor, up: Tensor, scale: float) -> None:
        super().__init__()
        self.weight = weight
        self.down = nn.Parameter(down.clone())
        self.up = nn.Parameter(up.clone())
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T + self.scale * (x @ self.down.T) @ self.up.T


@pytest.mark.parametrize("parts", [1, 3])
def test_training_equals_that_of_two_factors_with_autograd(parts: int) -> None:
    torch.manual_seed(3)
    rows, columns = 4, 6
    weight = nn.Parameter(torch.randn(parts * rows, columns))
    optimizer = LowRank([{"params": [weight], "parts": parts}], rank=2, alpha=8, **ADAM)
    state = optimizer.state[weight]
    start = weight.detach().clone().chunk(parts)
    reference = [AutogradLora(*factors, 4.0) for factors in zip(start, state["down"], state["up"], strict=True)]
    reference_optimizer = torch.optim.AdamW([each for layer in reference for each in layer.parameters()], **ADAM)
    for _ in range(6):
        x, y = torch.randn(9, columns), torch.randn(9, parts * rows)
        optimizer.zero_grad()
        functional.mse_loss(functional.linear(x, weight), y).backward()
        optimizer.step()
        reference_optimizer.zero_grad()
        functional.mse_loss(torch.cat([layer(x) for layer in reference], 1), y).backward()
        reference_optimizer.step()
    x = torch.randn(5, columns)
    expected = torch.cat([layer(x) for layer in reference], 1)
    assert_close(functional.linear(x, weight), expected)
    assert (weight - torch.cat(start)).abs().max() > 0.1


def test_a_step_is_the_same_where_products_are_in_bf16() -> None:
    stepped = []
    for enabled in (False, True):
        torch.manual_seed(3)
        weight = nn.Parameter(torch.randn(4, 6))
        optimizer = LowRank([{"params": [weight]}], rank=2, alpha=8, **ADAM)
        for _ in range(2):
            weight.grad = torch.randn(4, 6)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                optimizer.step()
        stepped.append(weight.detach())
    assert torch.equal(*stepped)


def make_optimizer(model: TextClassifier, rank: int = 2) -> torch.optim.Optimizer:
    config = TrainingConfig(learning_rate=0.01, lora_rank=rank, optimizer="adamw", seed=5)
    freeze_for_lora(model)
    return build_optimizer(model, config, CPU)


def update(model: TextClassifier, optimizer: torch.optim.Optimizer, seed: int) -> None:
    ids = torch.randint(2, 11, (5, 7), generator=torch.Generator().manual_seed(seed))
    functional.cross_entropy(model(ids), ids[:, 0] % 3).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def test_updates_of_layer_matrices_are_of_low_rank_and_only_the_head_is_trained_fully() -> None:
    model, start = make_classifier(), make_classifier()
    optimizer = make_optimizer(model)
    for seed in range(4):
        update(model, optimizer, seed)
    for (name, parameter), before in zip(model.named_parameters(), start.parameters(), strict=True):
        moved = (parameter - before).detach()
        if name.startswith(("pooler.", "output.")):
            assert moved.any(), name
        elif moved.ndim == 2 and name.startswith("encoder_layers."):
            for part in moved.chunk(3 if "project_in" in name else 1):
                singular = torch.linalg.svdvals(part)
                assert singular[1] > 1e-4, name
                assert singular[2] < 1e-5, f"{name} moved by more than two directions"
        else:
            assert not moved.any(), name


def test_building_the_optimizer_changes_no_weights() -> None:
    model, start = make_classifier(), make_classifier()
    make_optimizer(model)
    for parameter, before in zip(model.parameters(), start.parameters(), strict=True):
        assert parameter.equal(before)


def test_the_rank_is_at_most_that_of_the_matrix() -> None:
    weight = nn.Parameter(torch.randn(3, 5))
    optimizer = LowRank([{"params": [weight]}], rank=64, alpha=8, **ADAM)
    assert optimizer.state[weight]["up"].shape == (1, 3, 3)


def test_the_optimizer_state_is_smaller_than_the_matrices() -> None:
    model = make_classifier()
    optimizer = make_optimizer(model, rank=1)
    update(model, optimizer, 1)
    state = sum(tensor.numel() for name, tensor in optimizer_tensors(model, optimizer).items() if "encoder" in name)
    matrices = sum(each.numel() for name, each in model.named_parameters() if "encoder" in name and each.ndim == 2)
    assert state < matrices
