"""Linear layers of the torch decoding path, the rounding of their weights, and in int8 of their inputs.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.decoding.native.weights import Precision, quantize_int8

_EXACT_IN_FLOAT32 = 2**24 // 127**2  # products of 8-bit integers whose sum float32 holds exactly
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

    @cached_property
    def integers(self) -> tuple[Tensor, Tensor]:
        """The weight in int8: integers (O, I) in a format that sums their products exactly, and the scales (O,)."""
        integers, scale = map(torch.from_numpy, quantize_int8(self.original.float().numpy()))
        exact = self.original.size(1) <= _EXACT_IN_FLOAT32
        return integers.to(torch.float32 if exact else torch.float64), scale

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the layer: (R, I) -> (R, O)."""
        if self.rounding != "int8":
            return functional.linear(x, self.weight, self.bias)
        weight, scale = self.integers
        inputs, input_scale = _quantize_rows(x)
        outputs = functional.linear(inputs.to(weight.dtype), weight).to(x.dtype) * (input_scale * scale)
        return outputs if self.bias is None else outputs + self.bias


def _quantize_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round rows (R, I) to integers from -127 to 127 times a scale (R, 1), as `native/integers.h`."""
    largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-30)
    return (x * (127 / largest)).round(), largest / 127


def round_weight(weight: Tensor, precision: Precision) -> Tensor:
    """Round a matrix to the values of a precision, and keep its dtype: (O, I) -> (O, I).

    The result multiplies as float32 on every processor, with or without instructions for bf16.
    """
    if precision == "int8":
        integers, scale = map(torch.from_numpy, quantize_int8(weight.numpy()))
        return (integers * scale[:, None]).to(weight.dtype)
    return weight.bfloat16().to(weight.dtype) if precision == "bf16" else weight
