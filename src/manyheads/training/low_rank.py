"""Low-rank adaptation (LoRA: Hu et al. 2022): a product of two thin matrices is added to each matrix, W + s U V.

The model always holds the sum, so that it is as fast as before, and is saved, averaged and exported like any other.
By the chain rule, the gradients of U and V follow from the gradient G of W: s G V^T and s U^T G.

Shapes: r rows, c columns, k rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class LowRank(torch.optim.Optimizer):
    """Adam on the two factors U and V of the change of each matrix, with moments of the factors.

    With s = alpha / k, the length of a step does not depend on the rank. A group may set `parts`, the number of
    independent matrices that each of its parameters stacks; each of them has its own factors.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        rank: int,
        alpha: float,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float = 0.0,
        seed: int = 1,
    ) -> None:
        """Draw V as the weights of a linear layer; U is 0, so that W does not change at first.

        The rank is limited by the rows and columns of each matrix; `alpha` is the scale of the product before the
        division by the rank. The other settings are those of AdamW on the factors.
        """
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "parts": 1}
        super().__init__(groups, defaults)
        self.scale = alpha / rank
        rng = torch.Generator().manual_seed(seed)
        for group in self.param_groups:
            for matrix in group["params"]:
                self.state[matrix] = _initial_state(matrix, group["parts"], rank, rng)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Make one update; the factors stay in the format of their matrix, also where products are in bf16."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    with torch.autocast(matrix.device.type, enabled=False):
                        self.move(matrix, group)

    def move(self, matrix: Tensor, group: dict[str, Any]) -> None:
        """Make a step of both factors, then add the change of their product to the matrix."""
        state = self.state[matrix]
        up, down = state["up"], state["down"]  # (parts, r, k), (parts, k, c)
        gradient = matrix.grad.view(up.size(0), -1, matrix.size(1)) * self.scale  # type: ignore[union-attr]
        before = torch.bmm(up, down)
        state["step"] += 1
        slopes = {"up": torch.bmm(gradient, down.mT), "down": torch.bmm(up.mT, gradient)}
        for name, slope in slopes.items():
            _adam(state[name], slope, state[f"{name}_mean"], state[f"{name}_square"], float(state["step"]), group)
        moved = torch.bmm(up, down).sub_(before)
        matrix.add_(moved.view_as(matrix), alpha=self.scale)


def _initial_state(matrix: Tensor, parts: int, rank: int, rng: torch.Generator) -> dict[str, Tensor]:
    """Return the factors of a matrix (parts * r, c), and their moments; the rank is limited by r and c."""
    rows, columns = matrix.size(0) // parts, matrix.size(1)
    rank = min(rank, rows, columns)
    bound = 1 / math.sqrt(columns)
    down = torch.empty(parts, rank, columns).uniform_(-bound, bound, generator=rng).to(matrix)
    up = matrix.new_zeros(parts, rows, rank)
    return {
        "step": torch.tensor(0.0),
        "up": up,
        "down": down,
        "up_mean": torch.zeros_like(up),
        "down_mean": torch.zeros_like(down),
        "up_square": torch.zeros_like(up),
        "down_square": torch.zeros_like(down),
    }


def _adam(x: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, step: float, group: dict[str, Any]) -> None:
    """Make one step of AdamW (Loshchilov and Hutter 2019), in place."""
    first, second = group["betas"]
    mean.lerp_(gradient, 1 - first)
    square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    deviation = (square / (1 - second**step)).sqrt_().add_(group["eps"])
    x.mul_(1 - group["lr"] * group["weight_decay"])
    x.addcdiv_(mean, deviation, value=-group["lr"] / (1 - first**step))
