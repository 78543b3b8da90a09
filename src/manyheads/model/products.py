"""Linear layers as decoding by torch computes them, and the rounding of their weights.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["LinearProduct", "Precision", "Product", "rounded", "rounded_weight"]

Precision = Literal["fp32", "bf16", "int8"]
Product = Callable[[Tensor], Tensor]  # (R, I) -> (R, O), a tensor of its own

LARGEST = 127  # of 8 bits


class LinearProduct:
    """x W^T + b by `torch.nn.functional.linear`, on any device."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, rounding: Precision = "fp32"
    ) -> None:
        """Take weight (O, I) and bias (O,) of a layer, the dtype of the computation, and a rounding before it."""
        self.original = weight
        self.bias = None if bias is None else bias.to(dtype)
        self.dtype = dtype
        self.rounding = rounding

    @cached_property
    def weight(self) -> Tensor:
        """(O, I), rounded at the first use: a copy that is never made where compiled code computes."""
        return rounded_weight(self.original, self.rounding).to(self.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply: (R, I) -> (R, O)."""
        return functional.linear(x, self.weight, self.bias)


def rounded(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Round weights (O, I) to 8 bits: integers (O, I) int8 and their scales (O,) float32."""
    scale = weight.float().abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / LARGEST
    return (weight / scale[:, None]).round().to(torch.int8), scale


def rounded_weight(weight: Tensor, precision: Precision) -> Tensor:
    """Round a matrix to the values that a precision can hold, in its own dtype: (O, I) -> (O, I).

    The result multiplies as float32 on every processor, with or without instructions for bf16 or int8.
    """
    if precision == "int8":
        integers, scale = rounded(weight)
        return (integers * scale[:, None]).to(weight.dtype)
    return weight.bfloat16().to(weight.dtype) if precision == "bf16" else weight
