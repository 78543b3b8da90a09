"""Adam (section 5.3) and AdamW, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from manyheads.config.schema import TrainingConfig

__all__ = ["build_optimizer", "optimizer_tensors", "restore_optimizer"]

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def build_optimizer(model: nn.Module, config: TrainingConfig, device: torch.device) -> torch.optim.Adam:
    """The optimiser; AdamW decays matrices only, as is usual, plain Adam adds the decay to every gradient."""
    settings = {"lr": config.learning_rate, "betas": config.betas, "eps": config.epsilon}
    fused = device.type in ("cpu", "cuda")
    if config.optimizer == "adam":
        return torch.optim.Adam(
            model.parameters(),
            weight_decay=config.weight_decay,
            fused=fused,
            **settings,  # type: ignore[arg-type]
        )
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, fused=fused, **settings)  # type: ignore[arg-type]


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments and step counts of each parameter, as PARAMETER.MOMENT."""
    return {
        f"{name}.{moment}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        if parameter in optimizer.state
        for moment in MOMENTS
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took."""
    for name, parameter in model.named_parameters():
        if f"{name}.step" in tensors:
            optimizer.state[parameter] = {
                moment: tensors[f"{name}.{moment}"].to(parameter.device, copy=True) for moment in MOMENTS
            }
