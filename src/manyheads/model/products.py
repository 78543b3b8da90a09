"""Products with the weights of linear layers, as decoding computes them: often, and with few rows.

Shapes: R rows, I width of the input, O width of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Int8Product", "MakeProduct", "OneDnnProduct", "PlainProduct", "Product", "has_onednn", "rounded"]

Product = Callable[[Tensor], Tensor]  # (R, I) -> (R, O), a tensor of its own
MakeProduct = Callable[[Tensor, Tensor | None, torch.dtype], Product]  # of weight (O, I), bias (O,), number format

FEW_ROWS = 2  # up to which a product with weights of 8 bits is the faster one
LARGEST = 127  # of 8 bits


class PlainProduct:
    """x W^T + b as torch computes it: on any device, in any number format, at no cost beforehand."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.weight = weight.to(dtype)
        self.bias = None if bias is None else bias.to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """(R, I) -> (R, O)."""
        return functional.linear(x, self.weight, self.bias)


class OneDnnProduct:
    """The same by oneDNN on a CPU, with weights reordered at first use to the blocks that its kernels read.

    torch leaves products in fp32 to MKL, which uses half of the vector width of some processors
    (`benchmarks/products.py`).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.bias = None if bias is None else bias.to(dtype)
        self.product = torch.ops.mkldnn._linear_pointwise.default
        self.given: tuple[Tensor, torch.dtype] | None = weight, dtype
        self.packed: Tensor | None = None
        self.turn = Lock()  # of the threads that may all be the first

    def __call__(self, x: Tensor) -> Tensor:
        """(R, I) -> (R, O)."""
        if self.packed is None:
            self.reorder()
        product: Tensor = self.product(x, self.packed, self.bias, "none", [], "")
        return product

    def reorder(self) -> None:
        """Make the blocks, and let go of the weights as they were."""
        with self.turn:
            if self.given is not None:
                weight, dtype = self.given
                self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype).contiguous(), None)
                self.given = None


class Int8Product:
    """A product with weights rounded to 8 bits, a scale for each output; inputs and outputs in bf16.

    Few rows are bound by the reading of the weights, which is a quarter of that in fp32. More are bound by the
    arithmetic, and the rounded weights are multiplied in bf16: rounding each row of the inputs to 8 bits as well
    takes more time than the faster product gains (`benchmarks/products.py`).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.weight, scale = rounded(weight)
        self.scale = scale.to(dtype)
        self.bias = None if bias is None else bias.to(dtype)
        self.many = OneDnnProduct((self.weight * scale[:, None]).to(dtype), bias, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """(R, I) -> (R, O)."""
        if x.size(0) > FEW_ROWS:
            return self.many(x)
        product = torch._weight_int8pack_mm(x, self.weight, self.scale)
        return product if self.bias is None else product.add_(self.bias)


def rounded(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (O, I) as whole numbers of 8 bits (O, I), and what they are multiplied by (O,) float32."""
    scale = weight.float().abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / LARGEST
    return (weight / scale[:, None]).round().to(torch.int8), scale


def has_onednn() -> bool:
    """Whether this torch has what the last two need, which it does not document."""
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch, "_weight_int8pack_mm")
    )
