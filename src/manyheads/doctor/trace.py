"""Records of tensors and attentions for the tracer, and readers of the arguments of torch functions.

Shapes: B batch, T queries, S keys, H heads, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

__all__ = [
    "NO_TRACE",
    "Attention",
    "Lookup",
    "Projection",
    "TensorTrace",
    "add_mask",
    "as_float",
    "einsum_sizes",
    "flatten_values",
    "is_active_dropout",
    "product_sizes",
    "same_ids",
]

HIDDEN_BELOW = -1e3  # an additive mask below this hides


@dataclass(frozen=True)
class Projection:
    """Linear layer that computed a tensor: its widths, and the shape of its input."""

    width_in: int
    width_out: int
    shape: tuple[int, ...]


@dataclass
class Attention:
    """Record of a computed attention.

    Attributes:
        queries, keys: T and S.
        width: E, the length of a query.
        heads: H.
        factor: factor of the scores before the softmax.
        hidden: bool, True where a mask hides a score; broadcasts to (B, H, T, S) or (B * H, T, S); None
            without a mask.
        fills: the numbers put in the place of hidden scores.
        projection: linear layer that computed the queries, None if unknown.
        query, value: the tensors themselves; value is None until the weights are used.
    """

    queries: int
    keys: int
    width: int
    heads: int
    factor: float
    query: Tensor
    projection: Projection | None = None
    hidden: Tensor | None = None
    fills: list[float] = field(default_factory=list)
    value: Tensor | None = None

    def hide(self, hidden: Tensor) -> None:
        """Add a mask: True hides a score."""
        self.hidden = hidden if self.hidden is None else self.hidden | hidden


@dataclass(frozen=True)
class Lookup:
    """Lookup in an embedding matrix.

    Attributes:
        ids: as the model passed them.
        table: id() of the matrix.
        leaf: zeros that were added to the embeddings, to differentiate by; None where none was requested.
    """

    ids: Tensor
    table: int
    leaf: Tensor | None


@dataclass(frozen=True)
class TensorTrace:
    """Facts about a tensor.

    Attributes:
        factor: product of the scalars it was multiplied with since a linear layer computed it.
        projection: the linear layer that computed it.
        attention: the attention whose scores it holds, or with `weights` whose weights.
        attended: whether the tensor was computed from the output of an attention.
        dropped: number of the dropout whose result it is; only dropouts of the output of an attention count.
        after: numbers of such dropouts that it was computed from.
        embedded: names of the watched ids that it embeds, until a layer has read it.
    """

    factor: float = 1.0
    projection: Projection | None = None
    attention: Attention | None = None
    weights: bool = False
    attended: bool = False
    dropped: int | None = None
    after: frozenset[int] = frozenset()
    embedded: frozenset[str] = frozenset()


NO_TRACE = TensorTrace()


def flatten_values(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values; those in lists and tuples one by one."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flatten_values(value)
        else:
            yield value


def as_float(value: object) -> float | None:
    """Return a Python number or a tensor of one element as a float, None for anything else."""
    if isinstance(value, Tensor):
        return float(value.detach()) if value.numel() == 1 and value.dtype != torch.bool else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def same_ids(ids: Tensor, known: Tensor) -> bool:
    """Return whether ids equal the known ones, (B, length) or (length, B)."""
    return any(torch.equal(ids.to(known), rows) for rows in (known, known.t()))


def is_active_dropout(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call of functional.dropout(input, p, training) drops anything."""
    named = dict(zip(("input", "p", "training"), args, strict=False)) | dict(kwargs)
    return bool(named.get("training", True)) and named.get("p", 0.5) > 0


def add_mask(attention: Attention, mask: Tensor) -> None:
    """Add a mask to an attention: True hides; a number is added to the scores.

    Numbers are read as a mask if there are two of them, 0 and another below, or where they are very low.
    """
    if mask.dtype == torch.bool:
        attention.hide(mask)
    if not mask.is_floating_point() or mask.numel() == 0:
        return
    mask = mask.detach()
    low = float(mask.min())
    if low >= 0:
        return
    two_valued = bool(((mask == 0) | (mask == low)).all()) and float(mask.max()) == 0
    if two_valued or low < HIDDEN_BELOW:
        attention.hide(mask < (0 if two_valued else HIDDEN_BELOW))
        attention.fills.append(low)


Sizes = tuple[int, int, int, int | None]


def product_sizes(left: Tensor, right: Tensor) -> Sizes | None:
    """Return T, S, E and H of (..., T, E) @ (..., E, S); H is None where there are three axes only."""
    if left.dim() != right.dim() or left.dim() < 3:
        return None
    return left.size(-2), right.size(-1), left.size(-1), left.size(-3) if left.dim() > 3 else None


def einsum_sizes(equation: str, left: Tensor, right: Tensor) -> Sizes | None:
    """Return T, S, E and H of an einsum of two tensors, None unless it sums over exactly one axis."""
    inputs, _, output = equation.replace(" ", "").partition("->")
    first, _, second = inputs.partition(",")
    if len(first) != left.dim() or len(second) != right.dim() or not output:
        return None
    sizes = dict(zip(first, left.shape, strict=True)) | dict(zip(second, right.shape, strict=True))
    summed = [axis for axis in first if axis in second and axis not in output]
    shared = [axis for axis in output if axis in first and axis in second]
    queries = [axis for axis in output if axis in first and axis not in second]
    keys = [axis for axis in output if axis in second and axis not in first]
    if not len(summed) == len(queries) == len(keys) == 1 or not shared:
        return None
    return sizes[queries[0]], sizes[keys[0]], sizes[summed[0]], math.prod(sizes[axis] for axis in shared[1:])
