"""Muon (Jordan et al. 2024): steps along the momentum, orthogonalised so that all singular values are near 1.

Shapes: M matrices of one shape, r rows, c columns, r <= c.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_MOMENTUM = 0.95
_ITERATIONS = 5
_COEFFICIENTS = 3.4445, -4.7750, 2.0315  # of Jordan's quintic, which is steep at 0 and stays near 1 afterwards
_ADAM_SIZE = 0.2  # root mean square of Adam's usual step, in learning rates (Liu et al. 2025, section 2.2)

_Block = tuple[Tensor, Tensor, float]  # a matrix, the direction of its step, the learning rate


def _orthogonalize(matrices: Tensor) -> Tensor:
    """Return about U V^T of each matrix U S V^T (M, r, c): all singular values but the smallest are 0.7 to 1.2."""
    a, b, c = _COEFFICIENTS
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = torch.bmm(x, x.mT)
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """The Muon optimiser, for matrices only; its steps are as long as Adam's usual ones at the same learning rate.

    A group may set `parts`, the number of independent matrices that each of its parameters stacks.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay, "parts": 1})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Make one update; matrices of the same shape are orthogonalised together."""
        shapes: dict[torch.Size, list[_Block]] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                direction = self.direction(parameter)
                for block in zip(parameter.chunk(group["parts"]), direction.chunk(group["parts"]), strict=True):
                    matrix, step_direction = (x.mT if x.size(0) > x.size(1) else x for x in block)
                    shapes.setdefault(matrix.shape, []).append((matrix, step_direction, group["lr"]))
        for (_, columns), blocks in shapes.items():
            length = _ADAM_SIZE * math.sqrt(columns)
            steps = _orthogonalize(torch.stack([step_direction for _, step_direction, _ in blocks]))
            for (matrix, _, rate), step in zip(blocks, steps, strict=True):
                matrix.sub_(step, alpha=rate * length)

    def direction(self, parameter: Tensor) -> Tensor:
        """Update the momentum with the gradient, and return the direction with Nesterov's look-ahead."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"]
        momentum.mul_(_MOMENTUM).add_(parameter.grad)
        return parameter.grad.add(momentum, alpha=_MOMENTUM)
