"""Fine-tuning by layer: a smaller learning rate in lower layers, and the layers that LoRA leaves as they are.

The depth of a parameter is 0 for the embeddings, 1 to L for the layers in the order in which they are computed, and
L + 1 for the modules after them. A matrix that is tied to the embeddings has depth 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from manyheads.model.embedding import TokenEmbedding
from manyheads.model.transformer import Transformer

Group = dict[str, Any]  # a parameter group of a torch optimiser


def _depths(model: Transformer) -> dict[nn.Parameter, int]:
    depth_of: dict[nn.Parameter, int] = {}
    embeddings = [module for module in model.modules() if isinstance(module, TokenEmbedding)]
    levels = nn.ModuleList(embeddings), *model.layers(), model
    for depth, level in enumerate(levels):
        for parameter in level.parameters():
            depth_of.setdefault(parameter, depth)
    return depth_of


def freeze_for_lora(model: Transformer) -> None:
    """Freeze all weights but the matrices of the layers and the modules after the layers."""
    layers = sum(1 for _ in model.layers())
    for parameter, depth in _depths(model).items():
        if depth == 0 or (depth <= layers and parameter.ndim < 2):
            parameter.requires_grad_(False)


def layer_factors(model: Transformer, decay: float) -> dict[nn.Parameter, float] | None:
    """Return the factor of the learning rate of each parameter; None where all have the same.

    It is `training.layer_decay` to the power of the number of depths below the top (Clark et al. 2020, appendix A).
    """
    if decay == 1:
        return None
    depth_of = _depths(model)
    top = max(depth for parameter, depth in depth_of.items() if parameter.requires_grad)
    return {parameter: decay ** (top - depth) for parameter, depth in depth_of.items()}


def by_factor(groups: Iterable[Group], factor_of: Mapping[nn.Parameter, float] | None) -> list[Group]:
    """Return the groups that are not empty; with factors, each is divided into groups of one `factor`."""
    filled = [group for group in groups if group["params"]]
    if factor_of is None:
        return filled
    divided = []
    for group in filled:
        for factor in sorted({factor_of[parameter] for parameter in group["params"]}):
            parameters = [parameter for parameter in group["params"] if factor_of[parameter] == factor]
            divided.append({**group, "params": parameters, "factor": group.get("factor", 1.0) * factor})
    return divided
