"""Adam (section 5.3), AdamW and Muon, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.config.schema import TrainingConfig

__all__ = ["build_optimizer", "hidden_matrices", "optimizer_tensors", "restore_optimizer"]


def build_optimizer(model: nn.Module, config: TrainingConfig, device: torch.device) -> torch.optim.Optimizer:
    """The optimiser of `training.optimizer`; `factor` of a group multiplies its learning rate.

    Adam adds the decay to every gradient; AdamW and Muon take it off the matrices, as is usual. Muon (Jordan et al.
    2024) moves each hidden matrix along its momentum with all singular values brought near 1, and the rest by Adam.
    """
    fused = device.type in ("cpu", "cuda")
    adam = {"lr": config.learning_rate, "betas": config.betas, "eps": config.epsilon, "fused": fused}
    if config.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), weight_decay=config.weight_decay, **adam)  # type: ignore[arg-type]
    if config.optimizer == "muon":
        matrices = hidden_matrices(model)
        taken = {id(matrix) for matrix in matrices}
        muon = torch.optim.Muon(
            [{"params": matrices, "factor": config.muon_factor}],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            adjust_lr_fn="match_rms_adamw",  # Liu et al. (2025): steps as long as Adam's usually are
        )
        rest = [parameter for parameter in model.parameters() if id(parameter) not in taken]
        return Together(muon, torch.optim.Adam(rest, **adam))  # type: ignore[arg-type]
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **adam)  # type: ignore[arg-type]


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices inside the layers: neither embeddings nor the output, whose rows are words."""
    words = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    words |= {id(module.weight) for name, module in model.named_modules() if name == "output"}
    return [parameter for parameter in model.parameters() if parameter.ndim == 2 and id(parameter) not in words]


class Together(torch.optim.Optimizer):
    """Several optimisers as one, each on parameters of its own; they share groups and state."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts
        for part in parts:
            part.state = self.state

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One update of every part."""
        for part in self.parts:
            part.step(closure)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments and step counts of each parameter, as PARAMETER.MOMENT."""
    return {
        f"{name}.{moment}": tensor
        for name, parameter in model.named_parameters()
        for moment, tensor in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took; names that are no parameter's are left alone."""
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        name, _, moment = key.rpartition(".")
        if name in parameters:
            parameter = parameters[name]
            optimizer.state[parameter][moment] = tensor.to(parameter.device, copy=True)
