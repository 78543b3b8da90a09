"""Trace every attention that a model computes, without knowledge of its modules.

A `TorchFunctionMode` sees each call of a torch function. The tracer follows a few facts from call to call: which
matrix product became a softmax, how it was scaled and masked, what its weights were multiplied with, which linear
layer computed its queries. An attention that is written in an unknown way leaves no trace; the model is then judged
by its outputs alone.

Shapes: B batch, T queries, S keys, H heads, E head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manyheads.doctor.trace import (
    NO_TRACE,
    Attention,
    Lookup,
    Projection,
    TensorTrace,
    add_mask,
    as_float,
    einsum_sizes,
    flatten_values,
    is_active_dropout,
    product_sizes,
    same_ids,
)

__all__ = ["AttentionTracer"]

# Names of torch functions by their effect on the facts that are followed.
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


class AttentionTracer(TorchFunctionMode):
    """Mode that records attentions and embedding lookups while it is active.

    Args:
        watched: token ids by side ("source", "target"), whose embeddings are followed.
        leaves: add a leaf tensor of zeros to the embeddings of watched ids, to differentiate by.

    Attributes:
        attentions: recorded attentions in the order of their computation.
        lookups: every embedding lookup.
        streams: by side, the first tensor that a layer reads: embeddings and positions.
        dropped_residuals: number of additions in which a dropout's result was both residual and sublayer input.
    """

    def __init__(self, watched: Mapping[str, Tensor] | None = None, *, leaves: bool = False) -> None:
        super().__init__()
        self.watched = dict(watched or {})
        self.leaves = leaves
        self.attentions: list[Attention] = []
        self.lookups: list[Lookup] = []
        self.streams: dict[str, Tensor] = {}
        self.dropped_residuals = 0
        self._traces: dict[int, TensorTrace] = {}
        self._alive: list[Tensor] = []  # alive, so that no identity is given twice

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function and record its result."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.__name__
        if name == "embedding" and isinstance(result, Tensor):
            return self._trace_lookup(result, *args, **kwargs)
        changed = args[0] if name == "__setitem__" else result
        for part in changed if isinstance(changed, (tuple, list)) else [changed]:
            if isinstance(part, Tensor):
                self._remember(part, self._trace_result(name, args, kwargs))
        return result

    def leaf(self, name: str) -> Tensor | None:
        """Return the leaf to differentiate by for watched ids, None where no embeddings of them were looked up."""
        ids = self.watched[name]
        return next((lookup.leaf for lookup in self.lookups if lookup.leaf is not None and lookup.ids is ids), None)

    def trace(self, tensor: object) -> TensorTrace:
        """Return the facts about a tensor."""
        return self._traces.get(id(tensor), NO_TRACE)

    def _remember(self, tensor: Tensor, trace: TensorTrace) -> None:
        if trace != NO_TRACE or id(tensor) in self._traces:
            self._alive.append(tensor)
            self._traces[id(tensor)] = trace

    def _trace_lookup(self, result: Tensor, ids: Tensor, weight: Tensor, *rest: Any, **options: Any) -> Tensor:
        """Record an embedding lookup: `functional.embedding` takes the ids first, `torch.embedding` the matrix."""
        if ids.is_floating_point():
            ids, weight = weight, ids
        name = next((name for name, known in self.watched.items() if same_ids(ids, known)), None)
        leaf = None
        if name is not None and self.leaves:
            leaf = torch.zeros_like(result, requires_grad=True)
            result = result + leaf
        self.lookups.append(Lookup(self.watched[name] if name else ids.clone(), id(weight), leaf))
        if name is not None:
            self._remember(result, TensorTrace(embedded=frozenset({name})))
        return result

    def _trace_result(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TensorTrace:
        tensors = [value for value in flatten_values((*args, *kwargs.values())) if isinstance(value, Tensor)]
        if not tensors:
            return NO_TRACE
        traces = [self.trace(tensor) for tensor in tensors]
        if name in READERS or name in PRODUCTS:
            self._trace_reader(tensors)
        base = TensorTrace(
            attended=any(trace.attended for trace in traces),
            after=frozenset().union(*(trace.after for trace in traces)),
            embedded=frozenset().union(*(trace.embedded for trace in traces if name not in READERS)),
        )
        if name in SAME:
            return self._trace_same_values(name, traces[0], args, kwargs)
        if name == "linear":
            width_out, width_in = tensors[1].shape
            return replace(base, projection=Projection(width_in, width_out, tuple(tensors[0].shape)))
        if name == "addmm" and len(tensors) == 3:  # bias + x @ weight
            width_in, width_out = tensors[2].shape
            return replace(base, projection=Projection(width_in, width_out, tuple(tensors[1].shape)))
        if name in SCALINGS | MULTIPLICATIONS and len(args) == 2:
            return self._trace_scaling(base, name, *args)
        if name in FILLS:
            return self._trace_fill(base, *args, *kwargs.values())
        if name == "where" and len(args) == 3:
            return self._trace_where(base, *args)
        if name in ADDITIONS and len(tensors) == 2:
            return self._trace_addition(base, tensors, traces)
        if name == "softmax" and traces[0].attention:
            return replace(base, attention=traces[0].attention, weights=True)
        if name in PRODUCTS:
            return self._trace_product(base, args[0] if name == "einsum" else None, tensors)
        if name == "scaled_dot_product_attention":
            return self._trace_fused_attention(base, *args, **kwargs)
        if name == "multi_head_attention_forward":
            return self._trace_multi_head_attention(base, *args, **kwargs)
        return base

    def _trace_reader(self, tensors: Sequence[Tensor]) -> None:
        """Keep the first tensor that a layer reads of each watched side."""
        for tensor in tensors:
            for name in self.trace(tensor).embedded:
                self.streams.setdefault(name, tensor.detach())

    def _trace_same_values(
        self, name: str, trace: TensorTrace, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TensorTrace:
        if name == "dropout" and trace.attended and not trace.weights and is_active_dropout(args, kwargs):
            identity = 1 + len(self._alive)
            return replace(trace, dropped=identity, after=trace.after | {identity})
        return trace

    def _trace_scaling(self, base: TensorTrace, name: str, left: object, right: object) -> TensorTrace:
        factor = as_float(left) if as_float(right) is None else as_float(right)
        if factor is None:
            return base
        factor = 1 / (factor or float("inf")) if name in SCALINGS else factor
        trace = self.trace(left if as_float(right) is not None else right)
        if trace.attention and not trace.weights:
            trace.attention.factor *= factor
            return replace(base, attention=trace.attention)
        return replace(base, factor=trace.factor * factor, projection=trace.projection)

    def _trace_fill(self, base: TensorTrace, scores: object, mask: object, value: object) -> TensorTrace:
        trace, fill = self.trace(scores), as_float(value)
        if trace.attention is None or trace.weights:
            return replace(base, attention=trace.attention, weights=trace.weights)
        if fill is not None and isinstance(mask, Tensor) and mask.dtype == torch.bool:
            trace.attention.hide(mask)
            trace.attention.fills.append(fill)
        return replace(base, attention=trace.attention)

    def _trace_where(self, base: TensorTrace, condition: Tensor, left: object, right: object) -> TensorTrace:
        if self.trace(left).attention is None:
            return self._trace_fill(base, right, condition, left)
        return self._trace_fill(base, left, ~condition, right)

    def _trace_addition(
        self, base: TensorTrace, tensors: Sequence[Tensor], traces: Sequence[TensorTrace]
    ) -> TensorTrace:
        for trace, other in zip(traces, reversed(tensors), strict=True):
            if trace.attention and not trace.weights:
                add_mask(trace.attention, other)
                return replace(base, attention=trace.attention)
        left, right = traces
        self.dropped_residuals += left.dropped in right.after or right.dropped in left.after
        return base

    def _trace_product(self, base: TensorTrace, equation: str | None, tensors: Sequence[Tensor]) -> TensorTrace:
        *before, left, right = tensors
        for weights, value in ((left, right), (right, left)):
            trace = self.trace(weights)
            if trace.attention and trace.weights:
                trace.attention.value = value
                self.attentions.append(trace.attention)
                return replace(base, attended=True)
        sizes = einsum_sizes(equation, left, right) if equation else product_sizes(left, right)
        if sizes is None:
            return base
        queries, keys, width, heads = sizes
        if heads is None:  # (B * H, T, E), or (B, T, E)
            heads = max(1, left.size(0) // next((len(ids) for ids in self.watched.values()), left.size(0)))
        query, key = self.trace(left), self.trace(right)
        attention = Attention(queries, keys, width, heads, query.factor * key.factor, left, query.projection)
        for mask in before:
            add_mask(attention, mask)
        return replace(base, attention=attention)

    def _trace_fused_attention(
        self,
        base: TensorTrace,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **options: Any,
    ) -> TensorTrace:
        """Record `functional.scaled_dot_product_attention`, (B, H, T, E)."""
        width, heads = query.size(-1), query.size(-3) if query.dim() > 3 else 1
        factor = width**-0.5 if scale is None else scale
        factor *= self.trace(query).factor * self.trace(key).factor
        attention = Attention(
            query.size(-2), key.size(-2), width, heads, factor, query, self.trace(query).projection
        )
        if attn_mask is not None:
            add_mask(attention, ~attn_mask if attn_mask.dtype == torch.bool else attn_mask)
        if is_causal:
            attention.hide(torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).triu(1))
        attention.value = value
        self.attentions.append(attention)
        return replace(base, attended=True)

    def _trace_multi_head_attention(
        self,
        base: TensorTrace,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        width: int,
        heads: int,
        *rest: Any,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
        **options: Any,
    ) -> TensorTrace:
        """Record `functional.multi_head_attention_forward`, time first: (T, B, D)."""
        head = width // heads
        attention = Attention(query.size(0), key.size(0), head, heads, head**-0.5, query, value=value)
        if key_padding_mask is not None:
            add_mask(attention, key_padding_mask[..., None, None, :])
        if attn_mask is not None:
            add_mask(attention, attn_mask.unflatten(0, (-1, heads)) if attn_mask.dim() == 3 else attn_mask)
        self.attentions.append(attention)
        return replace(base, attended=True)
