"""Low-rank adaptation (LoRA: Hu et al. 2022): each matrix W moves by a product of two thin ones, W + s U V.

The model always has the sum, so that it is as fast as before, and is saved, averaged and exported like any other.
The gradients of U and V are those of the chain rule, from the gradient of W: s G V^T and s U^T G.

Shapes: r rows, c columns, k rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["LowRank"]


class LowRank(torch.optim.Optimizer):
    """Adam on the two factors of what each matrix moves by; Adam's moments, too, are those of the factors.

    The step of a pair of factors is as long whatever their rank, as s = alpha / k. Each group may set `parts`: of
    how many independent matrices, one above the other, its parameters consist; each has factors of its own.
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
        """Draw V, the first k rows of a layer that reads the input; U is 0, so that W is still the same.

        Args:
            groups: of matrices.
            rank: k; of a matrix with fewer rows or columns, so many.
            alpha: the scale of what is added, before it is divided by the rank.
            lr: Adam's learning rate.
            betas: Adam's.
            eps: Adam's.
            weight_decay: AdamW's, taken off the factors.
            seed: of V.
        """
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "parts": 1}
        super().__init__(groups, defaults)
        self.scale = alpha / rank
        dice = torch.Generator().manual_seed(seed)
        for group in self.param_groups:
            for matrix in group["params"]:
                self.state[matrix] = begin(matrix, group["parts"], rank, dice)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One update."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self.move(matrix, group)

    def move(self, matrix: Tensor, group: dict[str, Any]) -> None:
        """Step along both factors, then move the matrix by what their product has changed."""
        state = self.state[matrix]
        up, down = state["up"], state["down"]  # (parts, r, k), (parts, k, c)
        gradient = matrix.grad.view(up.size(0), -1, matrix.size(1)) * self.scale  # type: ignore[union-attr]
        before = torch.bmm(up, down)
        state["step"] += 1
        slopes = {"up": torch.bmm(gradient, down.mT), "down": torch.bmm(up.mT, gradient)}
        for name, slope in slopes.items():
            adam(state[name], slope, state[f"{name}_mean"], state[f"{name}_square"], float(state["step"]), group)
        moved = torch.bmm(up, down).sub_(before)
        matrix.add_(moved.view_as(matrix), alpha=self.scale)


def begin(matrix: Tensor, parts: int, rank: int, dice: torch.Generator) -> dict[str, Tensor]:
    """The factors of a matrix, and their moments.

    Args:
        matrix: (parts * r, c).
        parts: how many independent matrices it consists of.
        rank: k, if r and c are no smaller.
        dice: what V is drawn with.
    """
    rows, columns = matrix.size(0) // parts, matrix.size(1)
    rank = min(rank, rows, columns)
    bound = 1 / math.sqrt(columns)
    down = torch.empty(parts, rank, columns).uniform_(-bound, bound, generator=dice).to(matrix)
    up = matrix.new_zeros(parts, rows, rank)
    return {
        "step": torch.tensor(0.0),
        "up": up,
        "down": down,
        **{f"{name}_mean": torch.zeros_like(one) for name, one in (("up", up), ("down", down))},
        **{f"{name}_square": torch.zeros_like(one) for name, one in (("up", up), ("down", down))},
    }


def adam(x: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, step: float, group: dict[str, Any]) -> None:
    """One step of AdamW (Loshchilov and Hutter 2019), in place."""
    first, second = group["betas"]
    mean.lerp_(gradient, 1 - first)
    square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    deviation = (square / (1 - second**step)).sqrt_().add_(group["eps"])
    x.mul_(1 - group["lr"] * group["weight_decay"])
    x.addcdiv_(mean, deviation, value=-group["lr"] / (1 - first**step))
