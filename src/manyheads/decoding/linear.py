"""Linear layers of the torch decoding path, and the rounding of their weights.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.decoding.native.weights import Precision, quantize_int8

TensorFunction = Callable[[Tensor], Tensor]  # (R, I) -> (R, O), such as a linear layer, a norm or an activation


class InferenceLinear:
    """A linear layer, x W^T + b, by `torch.nn.functional.linear` on any device."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, rounding: Precision = "fp32"
    ) -> None:
        """Take weight (O, I) and bias (O,), the dtype of the computation, and the rounding of the weight."""
        self.original = weight
        self.bias = None if bias is None else bias.to(dtype)
        self.dtype = dtype
        self.rounding = rounding

    @cached_property
    def weight(self) -> Tensor:
        """The weight (O, I), rounded at the first use; native code never needs this copy."""
        return round_weight(self.original, self.rounding).to(self.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the layer: (R, I) -> (R, O)."""
        return functional.linear(x, self.weight, self.bias)


def round_weight(weight: Tensor, precision: Precision) -> Tensor:
    """Round a matrix to the values of a precision, and keep its dtype: (O, I) -> (O, I).

    The result multiplies as float32 on every processor, with or without instructions for bf16 or int8.
    """
    if precision == "int8":
        integers, scale = map(torch.from_numpy, quantize_int8(weight.numpy()))
        return (integers * scale[:, None]).to(weight.dtype)
    return weight.bfloat16().to(weight.dtype) if precision == "bf16" else weight
