"""Read what a call of a torch function does: its products, factors, masks and softmaxes."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Names of torch functions by what they do.
PRODUCTS = {"matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "einsum", "baddbmm"}
SCALINGS = {"div", "__truediv__", "true_divide", "div_", "__itruediv__", "divide", "divide_"}
MULTIPLICATIONS = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply", "multiply_"}
_FILLS = {"masked_fill", "masked_fill_", "__setitem__"}
ADDITIONS = {"add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "sub_", "__isub__"}
# Functions with a dropout, and the names of their first arguments.
DROPPING: Mapping[str, Sequence[str]] = {
    "dropout": ("input", "p", "training"),
    "scaled_dot_product_attention": ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale"),
    "multi_head_attention_forward": (
        "query", "key", "value", "embed_dim_to_check", "num_heads", "in_proj_weight", "in_proj_bias", "bias_k",
        "bias_v", "add_zero_attn", "dropout_p",
    ),
}  # fmt: skip
_SUM_TOLERANCE = 1e-2  # of the sum of the weights of a query
_HIDDEN_BELOW = -1e3  # an additive mask below this hides


def precise(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on a device without it (MPS) in float32."""
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def flatten_values(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values; those in lists and tuples one by one."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flatten_values(value)
        else:
            yield value


def _as_float(value: object) -> float | None:
    """Return a Python number or a tensor of one element as a float, None for anything else."""
    if isinstance(value, Tensor):
        plain = value.numel() == 1 and value.dtype != torch.bool and not value.is_complex()
        return float(value.detach()) if plain else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def arguments_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call of one of the functions in `DROPPING` by their names."""
    return {**dict(zip(DROPPING[name], args, strict=False)), **kwargs}


def active_dropout(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Return the rate of the dropout in a call of one of the functions in `DROPPING`, 0 where it drops nothing."""
    named = arguments_of(name, args, kwargs)
    rate = named.get("p", 0.5) if name == "dropout" else named.get("dropout_p") or 0.0
    return float(rate) if named.get("training", True) else 0.0


def additive_mask(mask: Tensor) -> tuple[float | None, Tensor | None]:
    """Return the number that a mask adds to hidden scores, and their bool mask; None for a tensor that is no mask.

    A tensor is a mask if its values are 0 and one negative number, or if some are very low. The values 0 and -1
    are a boolean mask that was not converted.
    """
    if not mask.is_floating_point() or mask.numel() == 0:
        return None, None
    mask = mask.detach()
    low = float(mask.min())
    two_valued = low < 0 and low != -1 and bool(((mask == 0) | (mask == low)).all()) and float(mask.max()) == 0
    if not two_valued and low >= _HIDDEN_BELOW:
        return None, None
    return low, mask < (0 if two_valued else _HIDDEN_BELOW)


@dataclass(frozen=True)
class Product:
    """Product of two tensors, as an einsum: labels of the axes of both tensors and of the result."""

    left: str
    right: str
    out: str
    sizes: Mapping[str, int]

    @property
    def summed(self) -> list[str]:
        """Return the axes of both tensors that are summed over."""
        return [axis for axis in self.left if axis in self.right and axis not in self.out]

    def free(self, side: str, other: str) -> list[str]:
        """Return the axes of the result that come from one tensor alone."""
        return [axis for axis in self.out if axis in side and axis not in other]


def product_of(equation: str | None, left: Tensor, right: Tensor) -> Product | None:
    """Return the axes of an einsum, or of a matrix product without an equation; None if they cannot be read."""
    if equation is None:
        if left.dim() < 2 or right.dim() < 2:
            return None
        equation = "...xy,...yz->...xz"
    inputs, arrow, out = equation.replace(" ", "").partition("->")
    first, comma, second = inputs.partition(",")
    if not arrow or not comma or "," in second:
        return None
    counts = [left.dim() - len(first.replace("...", "")), right.dim() - len(second.replace("...", ""))]
    dots = [letter for letter in string.ascii_letters if letter not in equation][: max(*counts, 0)]
    first, second, out = (
        labels.replace("...", "".join(dots[len(dots) - count :]))
        for labels, count in ((first, counts[0]), (second, counts[1]), (out, len(dots)))
    )
    if len(first) != left.dim() or len(second) != right.dim():
        return None
    sizes: dict[str, int] = {}
    for axis, size in (*zip(first, left.shape, strict=True), *zip(second, right.shape, strict=True)):
        sizes[axis] = max(size, sizes.get(axis, 1))
    return Product(first, second, out, sizes)


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a weight of a module."""
    return isinstance(tensor, nn.Parameter) or (tensor.is_leaf and tensor.requires_grad)


def rearrange_index(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], index: Tensor
) -> Sequence[Tensor | None]:
    """Apply a function that rearranges a tensor to the index of this tensor."""
    named = dict(kwargs)
    if args:
        args = [index, *args[1:]]
    else:
        named["input" if "input" in named else "self"] = index
    result = func(*args, **named)
    return result if isinstance(result, (tuple, list)) else [result]


def scalar_factor(name: str, args: Sequence[Any]) -> float | None:
    """Return the number that a function multiplies a tensor with, None where it does something else.

    A learned factor is NaN: it is not judged.
    """
    if name not in SCALINGS | MULTIPLICATIONS or len(args) < 2:
        return None
    if any(isinstance(value, Tensor) and value.numel() == 1 and is_parameter(value) for value in args):
        return math.nan
    factor = _as_float(args[1])
    if factor is None and name in MULTIPLICATIONS:
        factor = _as_float(args[0])
    if factor is None:
        return None
    return 1 / (factor or math.inf) if name in SCALINGS else factor


def mask_and_fill(name: str, inputs: Sequence[Any], scores: Tensor) -> tuple[float, Tensor | None]:
    """Return the number that a function replaces hidden scores by, or adds to them, and the bool mask of them.

    A fill of all keys of a query at once, which keeps its softmax defined, is none.
    """
    fill, hidden = None, None
    if name in _FILLS and len(inputs) == 3:
        hidden, fill = inputs[1], _as_float(inputs[2])
    elif name == "where" and len(inputs) == 3:
        hidden, fill = (
            (inputs[0], _as_float(inputs[1])) if inputs[2] is scores else (~inputs[0], _as_float(inputs[2]))
        )
    elif name in ADDITIONS:
        sign = -1 if "sub" in name else 1
        masks = [sign * operand for operand in inputs if isinstance(operand, Tensor) and operand is not scores]
        fill, hidden = additive_mask(masks[0]) if masks else (None, None)
    if fill is None or not isinstance(hidden, Tensor) or hidden.dtype != torch.bool:
        return 0.0, None
    return fill, hidden


def softmax_axis(weights: Tensor) -> int | None:
    """Return the axis along which elements are not negative and have the sum 1, None if there is none."""
    weights = weights.detach().float().nan_to_num()
    if bool((weights < 0).any()):
        return None
    axes = reversed(range(weights.dim()))
    return next((axis for axis in axes if bool(((weights.sum(axis) - 1).abs() < _SUM_TOLERANCE).all())), None)
