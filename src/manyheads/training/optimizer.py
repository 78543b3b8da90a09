"""The optimisers Adam (section 5.3), AdamW, Muon and LoRA, and their state as named tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.config.schema import TrainingConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.layers import FeedForward
from manyheads.model.transformer import Transformer
from manyheads.tensors.sharded import distribute_like, full_tensor
from manyheads.training.layerwise import by_factor
from manyheads.training.low_rank import LowRank
from manyheads.training.muon import Muon

_LORA_ALPHA = 16  # the product of the two matrices is multiplied by this over their rank


def build_optimizer(
    model: Transformer,
    config: TrainingConfig,
    device: torch.device,
    factor_of: Mapping[nn.Parameter, float] | None = None,
) -> torch.optim.Optimizer:
    """Build the optimiser of `training.optimizer` for all trainable parameters.

    Adam adds the weight decay to every gradient; AdamW and Muon subtract it from the matrices, as is usual. Muon
    and LoRA update the matrices of the layers, and Adam updates embeddings and vectors. The `factor` of a parameter
    group multiplies its learning rate; `factor_of` is that of `layer_factors`.
    """
    matrices: dict[int, list[nn.Parameter]] = {}
    if config.lora_rank:
        matrices = _hidden_matrices(nn.ModuleList(model.layers()))
    elif config.optimizer == "muon":
        matrices = _hidden_matrices(model)
    in_matrices = {id(matrix) for group in matrices.values() for matrix in group}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in in_matrices]
    for_rest = _adam_on(rest, config, device, factor_of) if rest else None
    if not matrices:
        assert for_rest is not None
        return for_rest
    for_matrices = _matrix_optimizer(matrices, config, factor_of)
    return for_matrices if for_rest is None else _CombinedOptimizer(for_matrices, for_rest)


def _adam_on(
    parameters: Sequence[nn.Parameter],
    config: TrainingConfig,
    device: torch.device,
    factor_of: Mapping[nn.Parameter, float] | None,
) -> torch.optim.Optimizer:
    fused = device.type in ("cpu", "cuda")
    settings: dict[str, Any] = {"lr": config.learning_rate, "betas": config.betas, "eps": config.epsilon}
    if config.optimizer == "adamw":
        matrices = {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay}
        vectors = {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0}
        return torch.optim.AdamW(by_factor([matrices, vectors], factor_of), fused=fused, **settings)
    match config.optimizer:
        case "adam":
            decay = config.weight_decay
        case "muon":
            decay = 0.0
    groups = by_factor([{"params": list(parameters), "weight_decay": decay}], factor_of)
    return torch.optim.Adam(groups, fused=fused, **settings)


def _matrix_optimizer(
    matrices: Mapping[int, list[nn.Parameter]],
    config: TrainingConfig,
    factor_of: Mapping[nn.Parameter, float] | None,
) -> torch.optim.Optimizer:
    """Build Muon or LoRA for parameters that are grouped by the number of matrices that each stacks."""
    factor = {} if config.lora_rank else {"factor": config.muon_factor}
    groups = by_factor(
        [{"params": group, "parts": parts, **factor} for parts, group in matrices.items()], factor_of
    )
    if config.lora_rank:
        return LowRank(
            groups,
            rank=config.lora_rank,
            alpha=_LORA_ALPHA,
            lr=config.learning_rate,
            betas=config.betas,
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            seed=config.seed,
        )
    return Muon(groups, lr=config.learning_rate, weight_decay=config.weight_decay)


def _hidden_matrices(model: nn.Module) -> dict[int, list[nn.Parameter]]:
    """Return the matrices of the layers, grouped by the number of independent matrices that each stacks.

    Embeddings and the output matrix, whose rows are tokens, are left out.
    """
    tokens = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    tokens |= {id(module.weight) for name, module in model.named_modules() if name == "output"}
    parts = {id(matrix): count for module in model.modules() for matrix, count in _stack(module)}
    groups: dict[int, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if parameter.ndim == 2 and parameter.requires_grad and id(parameter) not in tokens:
            groups.setdefault(parts.get(id(parameter), 1), []).append(parameter)
    return groups


def _stack(module: nn.Module) -> list[tuple[Tensor, int]]:
    """Return the matrix of a module that stacks several independent matrices, and their number."""
    if isinstance(module, MultiHeadAttention):
        return [(module.project_in.weight, 3)]
    if isinstance(module, FeedForward) and module.activation == "swiglu":
        return [(module.expand.weight, 2)]
    return []


class _CombinedOptimizer(torch.optim.Optimizer):
    """Several optimisers for different parameters as one; they share parameter groups and state."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts
        for part in parts:
            self.state.update(part.state)
            part.state = self.state

    def step(self) -> None:  # type: ignore[override]
        for part in self.parts:
            part.step()


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the moments and step counts of each parameter, named PARAMETER.MOMENT."""
    return {
        f"{name}.{moment}": full_tensor(tensor)
        for name, parameter in model.named_parameters()
        for moment, tensor in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Set the tensors that `optimizer_tensors` returned; other names are ignored."""
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        name, _, moment = key.rpartition(".")
        if name in parameters:
            parameter = parameters[name]
            copy = tensor.to(parameter.device, copy=True)
            optimizer.state[parameter][moment] = distribute_like(copy, parameter) if copy.ndim else copy
