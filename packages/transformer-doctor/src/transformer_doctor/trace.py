"""Records of tensors and attentions for the tracer.

Shapes: B batch, T queries, S keys, H heads, E head width. A product of queries and keys has the shape (lead, T, S),
where lead stands for the axes of rows and heads in any number and order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from transformer_doctor.report import Place

HIDES = -100.0  # a score of at most this has no weight: exp(-100) is about 4e-44
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
        place: line of the examined code that computed it, None if unknown.
        projection, key_projection, value_projection: layers that computed them, None if unknown.
        logits: input of the softmax, (lead, T, S); None if unknown.
        weights: output of the softmax, (lead, T, S).
        used: weights that the values were multiplied with, (lead, T, S).
        softmax_axis: axis over which the softmax is taken.
        fills: numbers put in the place of hidden scores, or added to them.
        fixed_scale: whether torch itself scales the scores, so that the factor need not be judged.
        value: tensor that the weights are multiplied with; None until they are used.
        intended: scores that masks were applied to, hidden or not, bool (lead, T, S).
        filled: scores of `intended` whose fill hides them.
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
    place: Place | None = None
    projection: Projection | None = None
    key_projection: Projection | None = None
    value_projection: Projection | None = None
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
        """Store the factor of queries and keys, before scores are scaled."""
        self.input_factor = self.factor

    @property
    def factor(self) -> float:
        """Return the product of all factors."""
        return math.prod(self.factors)

    def add_mask(self, fill: float, hidden: Tensor | None) -> None:
        """Record a mask (lead, T, S), and its fill unless it covers all keys of each query that it covers."""
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
    """Record that a tensor holds scores or weights of an attention.

    Attributes:
        attention: the attention.
        index: for each element of the tensor, the flat index of its element of `attention.raw`.
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
        arranged = torch.full_like(raw, math.nan).flatten()
        arranged[self.index.flatten()] = values.detach().to(raw).flatten()
        return arranged.view(raw.shape)

    def axis(self, number: int) -> Axis:
        """Return the meaning of an axis of the tensor."""
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
        leaf: zeros that were added to the embeddings, for gradients with respect to them; None if not requested.
    """

    ids: Tensor
    table: int
    leaf: Tensor | None


@dataclass(frozen=True)
class TensorTrace:
    """Facts about a tensor.

    Attributes:
        factors: numbers it was multiplied with since a layer computed it.
        projection: the layer that computed it, before rotary position embeddings.
        parameter: the weight that it holds, perhaps transposed or multiplied by a number.
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


def same_ids(ids: Tensor, known: Tensor) -> bool:
    """Return whether ids equal the known ones, (B, length) or (length, B)."""
    return any(torch.equal(ids.to(known), rows) for rows in (known, known.t()))
