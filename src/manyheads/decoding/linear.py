"""Linear layers of the torch decoding path, and the rounding of their weights.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

TensorFunction = Callable[[Tensor], Tensor]  # (R, I) -> (R, O), such as a linear layer, a norm or an activation


class InferenceLinear:
    """A linear layer, x W^T + b, by `torch.nn.functional.linear` on any device."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, rounding: torch.dtype | None = None
    ) -> None:
        """Take weight (O, I) and bias (O,), the dtype of the computation, and that of rounding the weight."""
        self.original = weight
        self.bias = None if bias is None else bias.to(dtype)
        self.dtype = dtype
        self.rounding = rounding

    @cached_property
    def weight(self) -> Tensor:
        """The weight (O, I), rounded at the first use; native code never needs this copy."""
        weight = self.original if self.rounding is None else self.original.to(self.rounding)
        return weight.to(self.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute the layer: (R, I) -> (R, O)."""
        return functional.linear(x, self.weight, self.bias)
