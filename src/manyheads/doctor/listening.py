"""Listening to a model at work: every attention it computes, whoever wrote it.

A `TorchFunctionMode` sees each call of a torch function. From these it follows the few facts that matter: which
matrix product became a softmax, how it was scaled and masked, what its weights were multiplied with, which linear
layer made its queries. Nothing has to be known of the model's modules. What is written in a way that is not
recognised leaves no trace, and is then judged by the model's outputs alone.

Shapes: B batch, T queries, S keys, H heads, E head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manyheads.doctor.notes import (
    NOTHING,
    Attention,
    Lookup,
    Projection,
    Trail,
    add_mask,
    drops,
    einsum_sizes,
    flat,
    number,
    product_sizes,
    same_ids,
)

__all__ = ["Listener"]

# Names of torch functions by what they do to what is followed.
PRODUCTS = {"matmul", "__matmul__", "bmm", "einsum", "baddbmm"}
SCALINGS = {"div", "__truediv__", "true_divide", "div_", "__itruediv__", "divide"}
MULTIPLICATIONS = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"}
ADDITIONS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
FILLS = {"masked_fill", "masked_fill_", "__setitem__"}
READERS = {"layer_norm", "rms_norm", "batch_norm", "linear", "addmm", "multi_head_attention_forward"}
# The same numbers, perhaps in another order, another type, or fewer of them.
SAME = {
    "view", "reshape", "transpose", "permute", "contiguous", "float", "double", "half", "to", "type_as", "type",
    "unsqueeze", "squeeze", "flatten", "unflatten", "expand", "chunk", "split", "unbind", "__getitem__", "t",
    "movedim", "swapaxes", "swapdims", "clone", "detach", "dropout", "repeat_interleave", "view_as", "tensor_split",
}  # fmt: skip


class Listener(TorchFunctionMode):
    """Listens while it is entered.

    Args:
        watched: token ids by name ("source", "target"), whose embeddings are to be followed.
        leaves: add a leaf of zeros to the embeddings of watched ids, to differentiate by.

    Attributes:
        attentions: in the order they were computed.
        lookups: every embedding lookup.
        streams: by the name of watched ids, the first tensor a layer reads: embeddings and positions.
        dropped_residuals: how often a dropout's result was both a residual and the input of its sublayer.
    """

    def __init__(self, watched: Mapping[str, Tensor] | None = None, *, leaves: bool = False) -> None:
        super().__init__()
        self.watched = dict(watched or {})
        self.leaves = leaves
        self.attentions: list[Attention] = []
        self.lookups: list[Lookup] = []
        self.streams: dict[str, Tensor] = {}
        self.dropped_residuals = 0
        self._trails: dict[int, Trail] = {}
        self._kept: list[Tensor] = []  # alive, so that no identity is given twice

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, and take notes."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.__name__
        if name == "embedding" and isinstance(result, Tensor):
            return self._looked_up(result, *args, **kwargs)
        changed = args[0] if name == "__setitem__" else result
        for part in changed if isinstance(changed, (tuple, list)) else [changed]:
            if isinstance(part, Tensor):
                self._follow(part, self._trail_of_result(name, args, kwargs))
        return result

    def leaf(self, name: str) -> Tensor | None:
        """The leaf by which to differentiate for watched ids, None where nothing was looked up."""
        ids = self.watched[name]
        found = [lookup.leaf for lookup in self.lookups if lookup.leaf is not None and lookup.ids is ids]
        return found[0] if found else None

    def trail(self, tensor: object) -> Trail:
        """What is known of a tensor."""
        return self._trails.get(id(tensor), NOTHING)

    def _follow(self, tensor: Tensor, trail: Trail) -> None:
        if trail != NOTHING or id(tensor) in self._trails:
            self._kept.append(tensor)
            self._trails[id(tensor)] = trail

    def _looked_up(self, result: Tensor, ids: Tensor, weight: Tensor, *rest: Any, **options: Any) -> Tensor:
        """Note an embedding lookup: `functional.embedding` takes the ids first, `torch.embedding` the matrix."""
        if ids.is_floating_point():
            ids, weight = weight, ids
        name = next((name for name, known in self.watched.items() if same_ids(ids, known)), None)
        leaf = None
        if name is not None and self.leaves:
            leaf = torch.zeros_like(result, requires_grad=True)
            result = result + leaf
        self.lookups.append(Lookup(self.watched[name] if name else ids.clone(), id(weight), leaf))
        if name is not None:
            self._follow(result, Trail(embedded=frozenset({name})))
        return result

    def _trail_of_result(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Trail:
        tensors = [value for value in flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        if not tensors:
            return NOTHING
        trails = [self.trail(tensor) for tensor in tensors]
        if name in READERS or name in PRODUCTS:
            self._read(tensors)
        base = Trail(
            attended=any(trail.attended for trail in trails),
            after=frozenset().union(*(trail.after for trail in trails)),
            embedded=frozenset().union(*(trail.embedded for trail in trails if name not in READERS)),
        )
        if name in SAME:
            return self._same(name, trails[0], args, kwargs)
        if name == "linear":
            width_out, width_in = tensors[1].shape
            return replace(base, projection=Projection(width_in, width_out, tuple(tensors[0].shape)))
        if name == "addmm" and len(tensors) == 3:  # bias + x @ weight
            width_in, width_out = tensors[2].shape
            return replace(base, projection=Projection(width_in, width_out, tuple(tensors[1].shape)))
        if name in SCALINGS | MULTIPLICATIONS and len(args) == 2:
            return self._scaled(base, name, *args)
        if name in FILLS:
            return self._filled(base, *args, *kwargs.values())
        if name == "where" and len(args) == 3:
            return self._chosen(base, *args)
        if name in ADDITIONS and len(tensors) == 2:
            return self._added(base, tensors, trails)
        if name == "softmax" and trails[0].attention:
            return replace(base, attention=trails[0].attention, weights=True)
        if name in PRODUCTS:
            return self._product(base, args[0] if name == "einsum" else None, tensors)
        if name == "scaled_dot_product_attention":
            return self._fused(base, *args, **kwargs)
        if name == "multi_head_attention_forward":
            return self._torch_module(base, *args, **kwargs)
        return base

    def _read(self, tensors: Sequence[Tensor]) -> None:
        """Keep the first tensor a layer reads that comes from watched ids."""
        for tensor in tensors:
            for name in self.trail(tensor).embedded:
                self.streams.setdefault(name, tensor.detach())

    def _same(self, name: str, trail: Trail, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Trail:
        if name == "dropout" and trail.attended and not trail.weights and drops(args, kwargs):
            identity = 1 + len(self._kept)
            return replace(trail, dropped=identity, after=trail.after | {identity})
        return trail

    def _scaled(self, base: Trail, name: str, left: object, right: object) -> Trail:
        factor = number(left) if number(right) is None else number(right)
        if factor is None:
            return base
        factor = 1 / (factor or float("inf")) if name in SCALINGS else factor
        trail = self.trail(left if number(right) is not None else right)
        if trail.attention and not trail.weights:
            trail.attention.factor *= factor
            return replace(base, attention=trail.attention)
        return replace(base, factor=trail.factor * factor, projection=trail.projection)

    def _filled(self, base: Trail, scores: object, mask: object, value: object) -> Trail:
        trail, fill = self.trail(scores), number(value)
        if trail.attention is None or trail.weights:
            return replace(base, attention=trail.attention, weights=trail.weights)
        if fill is not None and isinstance(mask, Tensor) and mask.dtype == torch.bool:
            trail.attention.hide(mask)
            trail.attention.fills.append(fill)
        return replace(base, attention=trail.attention)

    def _chosen(self, base: Trail, condition: Tensor, left: object, right: object) -> Trail:
        swapped = self.trail(left).attention is None
        attention, fill = self.trail(right if swapped else left).attention, number(left if swapped else right)
        if attention is None:
            return base
        if fill is not None:
            attention.hide(condition if swapped else ~condition)
            attention.fills.append(fill)
        return replace(base, attention=attention)

    def _added(self, base: Trail, tensors: Sequence[Tensor], trails: Sequence[Trail]) -> Trail:
        for trail, other in zip(trails, reversed(tensors), strict=True):
            if trail.attention and not trail.weights:
                add_mask(trail.attention, other)
                return replace(base, attention=trail.attention)
        one, two = trails
        self.dropped_residuals += one.dropped in two.after or two.dropped in one.after
        return base

    def _product(self, base: Trail, equation: str | None, tensors: Sequence[Tensor]) -> Trail:
        *before, left, right = tensors
        for weights, value in ((left, right), (right, left)):
            trail = self.trail(weights)
            if trail.attention and trail.weights:
                trail.attention.value = value
                self.attentions.append(trail.attention)
                return replace(base, attended=True)
        sizes = einsum_sizes(equation, left, right) if equation else product_sizes(left, right)
        if sizes is None:
            return base
        queries, keys, width, heads = sizes
        if heads is None:  # (B * H, T, E), or (B, T, E)
            heads = max(1, left.size(0) // next((len(ids) for ids in self.watched.values()), left.size(0)))
        asking, asked = self.trail(left), self.trail(right)
        factor = asking.factor * asked.factor
        attention = Attention(queries, keys, width, heads, factor, left, asking.projection)
        for mask in before:
            add_mask(attention, mask)
        return replace(base, attention=attention)

    def _fused(
        self,
        base: Trail,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **options: Any,
    ) -> Trail:
        """`functional.scaled_dot_product_attention`, (B, H, T, E)."""
        width, heads = query.size(-1), query.size(-3) if query.dim() > 3 else 1
        factor = width**-0.5 if scale is None else scale
        factor *= self.trail(query).factor * self.trail(key).factor
        attention = Attention(
            query.size(-2), key.size(-2), width, heads, factor, query, self.trail(query).projection
        )
        if attn_mask is not None:
            add_mask(attention, ~attn_mask if attn_mask.dtype == torch.bool else attn_mask)
        if is_causal:
            attention.hide(torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).triu(1))
        attention.value = value
        self.attentions.append(attention)
        return replace(base, attended=True)

    def _torch_module(
        self,
        base: Trail,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        width: int,
        heads: int,
        *rest: Any,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        **options: Any,
    ) -> Trail:
        """`functional.multi_head_attention_forward`, time first: (T, B, D)."""
        head = width // heads
        attention = Attention(query.size(0), key.size(0), head, heads, head**-0.5, query, value=value)
        if key_padding_mask is not None:
            add_mask(attention, key_padding_mask[..., None, None, :])
        if attn_mask is not None:
            add_mask(attention, attn_mask.unflatten(0, (-1, heads)) if attn_mask.dim() == 3 else attn_mask)
        self.attentions.append(attention)
        return replace(base, attended=True)
