"""Adam (section 5.3), AdamW and Muon, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from manyheads.config.schema import TrainingConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.layers import FeedForward
from manyheads.model.sharded import distribute_like, full_tensor
from manyheads.training.muon import Muon

__all__ = ["build_optimizer", "optimizer_tensors", "restore_optimizer"]


def build_optimizer(model: nn.Module, config: TrainingConfig, device: torch.device) -> torch.optim.Optimizer:
    """The optimiser of `training.optimizer`; `factor` of a group multiplies its learning rate.

    Adam adds the decay to every gradient; AdamW and Muon take it off the matrices, as is usual. Muon leaves words
    and vectors to Adam.
    """
    fused = device.type in ("cpu", "cuda")
    adam = {"lr": config.learning_rate, "betas": config.betas, "eps": config.epsilon, "fused": fused}
    if config.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), weight_decay=config.weight_decay, **adam)  # type: ignore[arg-type]
    if config.optimizer == "muon":
        matrices = hidden_matrices(model)
        groups = [{"params": found, "parts": n, "factor": config.muon_factor} for n, found in matrices.items()]
        muon = Muon(groups, lr=config.learning_rate, weight_decay=config.weight_decay)
        taken = {id(matrix) for found in matrices.values() for matrix in found}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in taken]
        return Together(muon, torch.optim.Adam(rest, **adam))  # type: ignore[arg-type]
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, **adam)  # type: ignore[arg-type]


def hidden_matrices(model: nn.Module) -> dict[int, list[nn.Parameter]]:
    """The matrices inside the layers, by the number of parts they consist of.

    Neither embeddings nor the output are among them: their rows are words.
    """
    words = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    words |= {id(module.weight) for name, module in model.named_modules() if name == "output"}
    parts = {id(matrix): count for module in model.modules() for matrix, count in stacked(module)}
    found: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.ndim == 2 and id(parameter) not in words:
            found.setdefault(parts.get(id(parameter), 1), []).append(parameter)
    return found


def stacked(module: nn.Module) -> list[tuple[Tensor, int]]:
    """The matrix of a module that holds several independent ones above each other, and how many."""
    if isinstance(module, MultiHeadAttention):
        return [(module.project_in.weight, 3)]
    if isinstance(module, FeedForward) and module.activation == "swiglu":
        return [(module.expand.weight, 2)]
    return []


class Together(torch.optim.Optimizer):
    """Several optimisers as one, each on parameters of its own; they share groups and state."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts
        for part in parts:
            part.state = self.state

    def step(self) -> None:  # type: ignore[override]
        """One update of every part."""
        for part in self.parts:
            part.step()


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The moments and step counts of each parameter, as PARAMETER.MOMENT."""
    return {
        f"{name}.{moment}": full_tensor(tensor)
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
            copy = tensor.to(parameter.device, copy=True)
            optimizer.state[parameter][moment] = distribute_like(copy, parameter) if copy.ndim else copy
