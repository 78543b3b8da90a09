"""Fine-tuning by layer: freezing, gradual unfreezing, and a smaller learning rate in lower layers.

The depth of a parameter is 0 for the embeddings, 1 to L for the layers in the order in which they are computed, and
L + 1 for the modules after them. A matrix that is tied to the embeddings has depth 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from manyheads.config.schema import TrainingConfig
from manyheads.errors import ConfigError
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


def freeze(model: Transformer, config: TrainingConfig) -> None:
    """Freeze the embeddings and the lowest `training.frozen_layers` layers.

    With `training.lora_rank`, only the matrices of the layers and the modules after the layers are trained.

    Raises:
        ConfigError: the model has fewer layers, or no parameter is left to train.
    """
    layers = sum(1 for _ in model.layers())
    frozen = -1 if config.frozen_layers is None else config.frozen_layers
    if frozen > layers:
        raise ConfigError([f"training.frozen_layers = {frozen}, but the model has {layers}. Give at most so many."])
    for parameter, depth in _depths(model).items():
        left_out = config.lora_rank > 0 and depth <= layers and (depth == 0 or parameter.ndim < 2)
        if depth <= frozen or left_out:
            parameter.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            [
                f"training.frozen_layers = {frozen} freezes all of this model: nothing after its layers could "
                "learn. Give fewer."
            ]
        )


def by_depth(groups: Iterable[Group], depth_of: Mapping[nn.Parameter, int] | None) -> list[Group]:
    """Return the groups that are not empty; with depths, each is divided into groups of one `depth`."""
    filled = [group for group in groups if group["params"]]
    if depth_of is None:
        return filled
    divided = []
    for group in filled:
        for depth in sorted({depth_of[parameter] for parameter in group["params"]}):
            parameters = [parameter for parameter in group["params"] if depth_of[parameter] == depth]
            divided.append({**group, "params": parameters, "depth": depth})
    return divided


class LayerwiseLearningRate:
    """The factor of the learning rate at each depth.

    The factor is `training.layer_decay` to the power of the number of depths below the top (Clark et al. 2020,
    appendix A). It is 0 until `training.unfreeze_every` updates have passed for each of these depths (Howard and
    Ruder 2018, section 3.3).

    Attributes:
        depth_of: the depth of every parameter; None where all have the same learning rate.
        top, bottom: the highest and the lowest depth with a trained parameter.
    """

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        depth_of = _depths(model)
        trained = [depth for parameter, depth in depth_of.items() if parameter.requires_grad]
        self.top, self.bottom = max(trained), min(trained)
        self.decay = config.layer_decay
        self.unfreeze_every = config.unfreeze_every
        self.depth_of = None if self.decay == 1 and self.unfreeze_every is None else depth_of

    def factor(self, group: Group, step: int) -> float:
        """Return the factor of a parameter group in update `step`, the first being 1."""
        factor: float = group.get("factor", 1.0)
        if "depth" not in group:
            return factor
        below = self.top - group["depth"]
        if self.unfreeze_every is not None and step <= below * self.unfreeze_every:
            return 0.0
        return factor * self.decay**below

    def complete(self, step: int) -> bool:
        """Return whether all layers are unfrozen in update `step`."""
        return self.unfreeze_every is None or step > (self.top - self.bottom) * self.unfreeze_every
