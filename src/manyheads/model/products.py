"""Products with the weights of linear layers, as decoding computes them: often, and with few rows.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["MakeProduct", "OneDnnProduct", "PlainProduct", "Product", "has_onednn"]

Product = Callable[[Tensor], Tensor]  # (..., I) -> (..., O), a tensor of its own
MakeProduct = Callable[[Tensor, Tensor | None], Product]  # from weight (O, I) and bias (O,)


class PlainProduct:
    """x W^T + b with the weights where they are: on any device, in any number format, at no cost beforehand."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight
        self.bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        return functional.linear(x, self.weight, self.bias)


class OneDnnProduct:
    """The same by oneDNN, with weights reordered beforehand to the blocks that its kernels read.

    torch multiplies fp32 on a CPU by MKL, which uses half of the vector width of some processors; oneDNN's kernels
    are 1.2 to 2.4 times as fast there from two rows on, those of bf16 1.2 to 1.7 times (`benchmarks/products.py`).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.bias = bias
        self.product = torch.ops.mkldnn._linear_pointwise.default
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        product: Tensor = self.product(x, self.packed, self.bias, "none", [], "")
        return product


def has_onednn() -> bool:
    """Whether this build of torch has oneDNN's linear layers with reordered weights, which are not documented."""
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )
