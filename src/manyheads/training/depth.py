"""What learns, and how fast, by its height in the model: freezing, unfreezing, slower rates below.

The depth of a parameter: 0 the embeddings, 1 to L the layers in the order in which they are computed, L + 1 what
stands after them. A matrix that is tied to the embeddings is one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from manyheads.config.schema import TrainingConfig
from manyheads.errors import ConfigError
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.transformer import Transformer

__all__ = ["Pace", "by_depth", "depths", "freeze"]

Group = dict[str, Any]  # of parameters, as torch's optimisers know it


def depths(model: Transformer) -> dict[nn.Parameter, int]:
    """Of every parameter."""
    found: dict[nn.Parameter, int] = {}
    words = [module for module in model.modules() if isinstance(module, TokenEmbedding)]
    floors = nn.ModuleList(words), *model.layers(), model
    for depth, floor in enumerate(floors):
        for parameter in floor.parameters():
            found.setdefault(parameter, depth)
    return found


def freeze(model: Transformer, config: TrainingConfig) -> None:
    """Let the embeddings and `training.frozen_layers` of the layers, the first to be computed, stay as they are.

    With `training.lora_rank`, nothing learns but the matrices of the layers and what stands after them.

    Raises:
        ConfigError: there are not so many layers, or nothing is left to learn.
    """
    layers = sum(1 for _ in model.layers())
    frozen = -1 if config.frozen_layers is None else config.frozen_layers
    if frozen > layers:
        raise ConfigError([f"training.frozen_layers = {frozen}, but the model has {layers}. Give at most so many."])
    for parameter, depth in depths(model).items():
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
    """The groups of parameters that hold any; with depths, parted so that each is of one `depth`."""
    filled = [group for group in groups if group["params"]]
    if depth_of is None:
        return filled
    return [
        {**group, "params": [one for one in group["params"] if depth_of[one] == depth], "depth": depth}
        for group in filled
        for depth in sorted({depth_of[one] for one in group["params"]})
    ]


class Pace:
    """What the learning rate is multiplied by at each depth.

    `training.layer_decay` once for each step down from the top (Clark et al. 2020, appendix A), and 0 until
    `training.unfreeze_every` updates have gone by for each step (Howard and Ruder 2018, section 3.3).

    Attributes:
        depth_of: of every parameter; none where all learn alike.
        top, bottom: the highest and the lowest depth at which anything learns.
    """

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        found = depths(model)
        learning = [depth for parameter, depth in found.items() if parameter.requires_grad]
        self.top, self.bottom = max(learning), min(learning)
        self.decay = config.layer_decay
        self.unfreeze_every = config.unfreeze_every
        self.depth_of = None if self.decay == 1 and self.unfreeze_every is None else found

    def factor(self, group: Group, step: int) -> float:
        """Of a group of parameters in update `step`, the first being 1."""
        factor: float = group.get("factor", 1.0)
        if "depth" not in group:
            return factor
        below = self.top - group["depth"]
        if self.unfreeze_every is not None and step <= below * self.unfreeze_every:
            return 0.0
        return factor * self.decay**below

    def complete(self, step: int) -> bool:
        """Whether everything that shall learn does so in update `step`."""
        return self.unfreeze_every is None or step > (self.top - self.bottom) * self.unfreeze_every
