"""Records of tensors and attentions for the tracer, and readers of the arguments of torch functions.

Shapes: B batch, T queries, S keys, H heads, E head width. A product of queries and keys has the shape (lead, T, S),
where lead stands for the axes of rows and heads in any number and order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

__all__ = [
    "HIDES",
    "NO_TRACE",
    "Attention",
    "Lookup",
    "Product",
    "Projection",
    "ScorePart",
    "TensorTrace",
    "additive_mask",
    "as_float",
    "flatten_values",
    "is_active_dropout",
    "is_parameter",
    "product_of",
    "same_ids",
]

HIDDEN_BELOW = -1e3  # an additive mask below this hides
HIDES = -100.0  # a score of at most this has no weight: exp(-100) is nothing
Axis = Literal["queries", "keys", "other"]


@dataclass(frozen=True)
class Projection:
    """Layer that computed a tensor by a product with a weight.

    Attributes:
        width_in: width of its input.
        width_out: width of its output.
        shape: shape of the input of a linear layer, empty for other products.
        source: its input.
        weight: its weight.
        factors: numbers that its input was multiplied with since it was computed.
    """

    width_in: int
    width_out: int
    shape: tuple[int, ...]
    source: Tensor = field(compare=False, repr=False)
    weight: Tensor = field(compare=False, repr=False)
    factors: tuple[float, ...] = ()


@dataclass(eq=False)
class Attention:
    """Record of a computed attention.

    Attributes:
        queries, keys: T and S.
        width: E, the length of a query.
        heads: H.
        factors: numbers that queries, keys and scores were multiplied with before the softmax, one by one.
        raw: product of queries and keys, (lead, T, S).
        query, key: the tensors themselves.
        sides: sides of the input ("source", "target") that queries, and that keys, were computed from.
        place: file and line of the examined code that computed it, None if unknown.
        projection, key_projection: layers that computed queries and keys, None if unknown.
        logits: input of the softmax, (lead, T, S); None if unknown.
        weights: output of the softmax, (lead, T, S).
        used: weights that the values were multiplied with, (lead, T, S).
        softmax_axis: axis over which the softmax is taken.
        fills: numbers put in the place of hidden scores, or added to them.
        fixed_scale: whether torch itself scales the scores, so that the factor need not be judged.
        value: tensor that the weights are multiplied with; None until they are used.
        intended: scores that masks were applied to, bool (lead, T, S), whether or not they hide them.
        filled: those of them whose fill hides them.
        input_factor: product of the factors of queries and keys.
    """

    queries: int
    keys: int
    width: int
    heads: int
    factors: tuple[float, ...]
    raw: Tensor
    query: Tensor
    key: Tensor
    sides: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    place: tuple[str, int] | None = None
    projection: Projection | None = None
    key_projection: Projection | None = None
    logits: Tensor | None = None
    weights: Tensor | None = None
    used: Tensor | None = None
    softmax_axis: Axis = "keys"
    fills: list[float] = field(default_factory=list)
    fixed_scale: bool = False
    value: Tensor | None = None
    intended: Tensor | None = None
    filled: Tensor | None = None
    input_factor: float = field(init=False)

    def __post_init__(self) -> None:
        """Keep the factor of queries and keys, before scores are scaled."""
        self.input_factor = self.factor

    @property
    def factor(self) -> float:
        """Return the product of all factors."""
        return math.prod(self.factors)

    def add_mask(self, fill: float, hidden: Tensor | None) -> None:
        """Record a mask, (lead, T, S); one that covers all keys of each query it covers fills no single score."""
        if hidden is None:
            return
        hidden = hidden > 0
        self.intended = hidden if self.intended is None else self.intended | hidden
        if fill <= HIDES:
            self.filled = hidden if self.filled is None else self.filled | hidden
        if bool((hidden & ~hidden.all(-1, keepdim=True)).any()):
            self.fills.append(fill)

    def to_cpu(self) -> None:
        """Move the records to the CPU."""
        self._change_records(Tensor.cpu)

    def swap_axes(self) -> None:
        """Exchange queries and keys: the weights turned out to be contracted over the first axis of the product."""
        self.queries, self.keys = self.keys, self.queries
        self.query, self.key = self.key, self.query
        self.sides = self.sides[::-1]
        self.projection, self.key_projection = self.key_projection, self.projection
        self._change_records(lambda record: record.transpose(-1, -2))
        swapped: dict[Axis, Axis] = {"queries": "keys", "keys": "queries", "other": "other"}
        self.softmax_axis = swapped[self.softmax_axis]

    def _change_records(self, change: Callable[[Tensor], Tensor]) -> None:
        self.raw = change(self.raw)
        self.logits = None if self.logits is None else change(self.logits)
        self.weights = None if self.weights is None else change(self.weights)
        self.used = None if self.used is None else change(self.used)
        self.intended = None if self.intended is None else change(self.intended)
        self.filled = None if self.filled is None else change(self.filled)


@dataclass(frozen=True, eq=False)
class ScorePart:
    """Fact that a tensor holds scores or weights of an attention.

    Attributes:
        attention: the attention.
        index: for each element of the tensor, the number of the element of `attention.raw` that it belongs to.
        softmaxed: whether the elements are weights.
    """

    attention: Attention
    index: Tensor
    softmaxed: bool = False

    def arrange(self, values: Tensor) -> Tensor | None:
        """Return values of the tensor in the order of `attention.raw`; None if they are not one to one."""
        raw = self.attention.raw
        if values.shape != self.index.shape or self.index.numel() != raw.numel():
            return None
        arranged = torch.full((raw.numel(),), math.nan, dtype=torch.float64, device=values.device)
        arranged[self.index.flatten()] = values.detach().double().flatten()
        return arranged.view(raw.shape)

    def axis(self, number: int) -> Axis:
        """Return what an axis of the tensor runs over."""
        along = self.index.movedim(number, -1)
        if along.size(-1) < 2:
            return "other"
        first, second = along.reshape(-1, along.size(-1))[0, :2].tolist()
        keys = self.attention.raw.size(-1)
        if first // keys == second // keys:
            return "keys"
        return "queries" if first // (keys * self.attention.raw.size(-2)) == second // (
            keys * self.attention.raw.size(-2)
        ) else "other"  # fmt: skip


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
        factors: numbers it was multiplied with since a layer computed it.
        projection: the layer that computed it; rotations by positions are no other layer.
        parameter: the weight that it is, perhaps transposed or multiplied by a number.
        scores: the scores or weights of an attention that it holds.
        content: whether it was computed from embeddings of watched ids, or from the output of a layer.
        attended: whether the tensor was computed from the output of an attention.
        dropped: number of the dropout whose result it is; only dropouts of the output of an attention count.
        after: numbers of such dropouts that it was computed from.
        embedded: names of the watched ids that it embeds, until a layer has read it.
        sides: names of all watched ids that it was computed from.
    """

    factors: tuple[float, ...] = ()
    projection: Projection | None = None
    parameter: Tensor | None = field(default=None, compare=False)
    scores: ScorePart | None = None
    content: bool = False
    attended: bool = False
    dropped: int | None = None
    after: frozenset[int] = frozenset()
    embedded: frozenset[str] = frozenset()
    sides: frozenset[str] = frozenset()


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
        plain = value.numel() == 1 and value.dtype != torch.bool and not value.is_complex()
        return float(value.detach()) if plain else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def same_ids(ids: Tensor, known: Tensor) -> bool:
    """Return whether ids equal the known ones, (B, length) or (length, B)."""
    return any(torch.equal(ids.to(known), rows) for rows in (known, known.t()))


def is_active_dropout(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call of functional.dropout(input, p, training) drops anything."""
    named = dict(zip(("input", "p", "training"), args, strict=False)) | dict(kwargs)
    return bool(named.get("training", True)) and named.get("p", 0.5) > 0


def additive_mask(mask: Tensor) -> tuple[float | None, Tensor | None]:
    """Return the number that a mask adds to hidden scores, and which it hides: bool; None where it is no mask.

    Numbers are read as a mask if there are two of them, 0 and another below, or where they are very low. The
    numbers 0 and -1 are a boolean mask that was not converted.
    """
    if not mask.is_floating_point() or mask.numel() == 0:
        return None, None
    mask = mask.detach()
    low = float(mask.min())
    two_valued = low < 0 and low != -1 and bool(((mask == 0) | (mask == low)).all()) and float(mask.max()) == 0
    if not two_valued and low >= HIDDEN_BELOW:
        return None, None
    return low, mask < (0 if two_valued else HIDDEN_BELOW)


@dataclass(frozen=True)
class Product:
    """Product of two tensors, as an einsum: the labels of their axes and of those of the result."""

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


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def product_of(equation: str | None, left: Tensor, right: Tensor) -> Product | None:
    """Return the axes of a product, a matrix product without an equation; None where they cannot be read."""
    if equation is None:
        if left.dim() < 2 or right.dim() < 2:
            return None
        lead = LETTERS[: max(left.dim(), right.dim()) - 2]
        first = lead[len(lead) - left.dim() + 2 :] + "xy"
        second, out = lead[len(lead) - right.dim() + 2 :] + "yz", lead + "xz"
    else:
        inputs, arrow, out = equation.replace(" ", "").partition("->")
        first, comma, second = inputs.partition(",")
        if not arrow or not comma or "," in second:
            return None
        dots = "".join(letter for letter in LETTERS.upper() if letter not in equation)
        known = max(left.dim() - len(first.replace("...", "")), right.dim() - len(second.replace("...", "")), 0)
        first, second, out = (each.replace("...", dots[:known]) for each in (first, second, out))
    if len(first) != left.dim() or len(second) != right.dim():
        return None
    sizes: dict[str, int] = {}
    for axis, size in (*zip(first, left.shape, strict=True), *zip(second, right.shape, strict=True)):
        sizes[axis] = max(size, sizes.get(axis, 1))
    return Product(first, second, out, sizes)


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a weight of a module."""
    return isinstance(tensor, nn.Parameter) or (tensor.is_leaf and tensor.requires_grad)
