"""Adam (section 5.3), AdamW, Muon and LoRA, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.config.schema import TrainingConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.layers import FeedForward
from manyheads.model.sharded import distribute_like, full_tensor
from manyheads.model.transformer import Transformer
from manyheads.training.depth import by_depth
from manyheads.training.low_rank import LowRank
from manyheads.training.muon import Muon

__all__ = ["build_optimizer", "optimizer_tensors", "restore_optimizer"]


def build_optimizer(
    model: Transformer,
    config: TrainingConfig,
    device: torch.device,
    depth_of: Mapping[nn.Parameter, int] | None = None,
) -> torch.optim.Optimizer:
    """The optimiser of `training.optimizer` for all that learns.

    Adam adds the decay to every gradient; AdamW and Muon take it off the matrices, as is usual. Muon and LoRA take
    the matrices of the layers and leave words and vectors to Adam.

    Args:
        model: whose parameters.
        config: the plan.
        device: where they are.
        depth_of: given, groups of parameters are parted by it, and each has its `depth`. The `factor` of a group
            multiplies its learning rate.
    """
    matrices: dict[int, list[nn.Parameter]] = {}
    if config.lora_rank:
        matrices = hidden_matrices(nn.ModuleList(model.layers()))
    elif config.optimizer == "muon":
        matrices = hidden_matrices(model)
    taken = {id(matrix) for found in matrices.values() for matrix in found}
    rest = [one for one in model.parameters() if one.requires_grad and id(one) not in taken]
    others = adam_on(rest, config, device, depth_of) if rest else None
    if not matrices:
        assert others is not None
        return others
    own = steps_of_matrices(matrices, config, depth_of)
    return own if others is None else Together(own, others)


def adam_on(
    parameters: Sequence[nn.Parameter],
    config: TrainingConfig,
    device: torch.device,
    depth_of: Mapping[nn.Parameter, int] | None,
) -> torch.optim.Optimizer:
    """Adam or AdamW."""
    fused = device.type in ("cpu", "cuda")
    settings: dict[str, Any] = {"lr": config.learning_rate, "betas": config.betas, "eps": config.epsilon}
    if config.optimizer == "adamw":
        matrices = {"params": [one for one in parameters if one.ndim > 1], "weight_decay": config.weight_decay}
        vectors = {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0}
        return torch.optim.AdamW(by_depth([matrices, vectors], depth_of), fused=fused, **settings)
    decay = config.weight_decay if config.optimizer == "adam" else 0.0
    groups = by_depth([{"params": list(parameters), "weight_decay": decay}], depth_of)
    return torch.optim.Adam(groups, fused=fused, **settings)


def steps_of_matrices(
    matrices: Mapping[int, list[nn.Parameter]], config: TrainingConfig, depth_of: Mapping[nn.Parameter, int] | None
) -> torch.optim.Optimizer:
    """Muon or LoRA, for matrices by the number of parts they consist of."""
    groups = by_depth([{"params": found, "parts": parts} for parts, found in matrices.items()], depth_of)
    if config.lora_rank:
        return LowRank(
            groups,
            rank=config.lora_rank,
            alpha=config.lora_alpha,
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            seed=config.seed,
        )
    factored = [{**group, "factor": config.muon_factor} for group in groups]
    return Muon(factored, lr=config.learning_rate, weight_decay=config.weight_decay)


def hidden_matrices(model: nn.Module) -> dict[int, list[nn.Parameter]]:
    """The matrices inside the layers, by the number of parts they consist of.

    Neither embeddings nor the output are among them: their rows are words.
    """
    words = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    words |= {id(module.weight) for name, module in model.named_modules() if name == "output"}
    parts = {id(matrix): count for module in model.modules() for matrix, count in stacked(module)}
    found: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.ndim == 2 and parameter.requires_grad and id(parameter) not in words:
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
            self.state.update(part.state)
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
