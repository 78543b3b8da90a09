"""Trace every attention that a model computes, without knowledge of its modules.

A `TorchFunctionMode` sees each call of a torch function. The tracer follows a few facts from call to call: which
matrix product became a softmax, which element of it each later number belongs to, what its weights were multiplied
with, which layer computed its queries. An attention that is written in an unknown way leaves no trace; the model is
then judged by its outputs alone. The tracer itself raises no errors.

Shapes: B batch, T queries, S keys, H heads, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_doctor.places import running_place
from transformer_doctor.report import Place
from transformer_doctor.torch_calls import (
    ADDITIONS,
    DROPPING,
    MULTIPLICATIONS,
    PRODUCTS,
    SCALINGS,
    Product,
    active_dropout,
    additive_mask,
    arguments_of,
    flatten_values,
    is_parameter,
    mask_and_fill,
    precise,
    product_of,
    rearrange_index,
    scalar_factor,
    softmax_axis,
)
from transformer_doctor.trace import NO_TRACE, Attention, Lookup, Projection, ScorePart, TensorTrace, same_ids

# Names of torch functions by their effect on the facts that are followed.
# Functions that join tensors: rotary position embeddings join two halves of one tensor.
_JOINTS = {*ADDITIONS, "cat", "concat", "stack", "neg", "__neg__", "view_as_complex", "view_as_real", "complex"}
_READERS = {"layer_norm", "rms_norm", "batch_norm", "linear", "addmm", "multi_head_attention_forward"}
# Statistics of a norm that is written out: embeddings that such a function reads have reached the first layer.
_STATISTICS = {"mean", "std", "var", "var_mean", "std_mean", "pow", "__pow__", "square", "norm", "vector_norm"}
# Functions that return the same elements in another order, or some of them.
_ARRANGEMENTS = {
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten", "expand", "chunk",
    "split", "unbind", "__getitem__", "t", "movedim", "swapaxes", "swapdims", "repeat_interleave", "view_as",
    "tensor_split", "expand_as", "moveaxis", "narrow", "select", "__get__", "flip", "roll", "reshape_as",
    "adjoint", "repeat", "split_with_sizes",
}  # fmt: skip
# Functions that return the same elements in the same order, perhaps as another dtype.
_COPIES = {
    "contiguous", "float", "double", "half", "bfloat16", "to", "type_as", "type", "clone", "detach", "dropout",
    "cpu", "alias", "requires_grad_",
}  # fmt: skip


@dataclass(frozen=True)
class _Call:
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    tensors: Sequence[Tensor]
    result: Tensor


class StreamsKnown(BaseException):
    """Ends a call of a model of which nothing else is asked."""


class AttentionTracer(TorchFunctionMode):
    """Mode that records attentions and embedding lookups while it is active.

    Args:
        watched: token ids by side ("source", "target"), whose embeddings are followed.
        leaves: add a leaf tensor of zeros to the embeddings of watched ids, for gradients with respect to them, and
            record no attentions.
        streams_only: record the streams of the watched ids alone, and raise `StreamsKnown` when all are known.

    Attributes:
        attentions: recorded attentions in the order of their computation.
        lookups: every embedding lookup.
        streams: input of the first layer (embeddings and positions) by side.
        dropout_rates: rates of the dropouts that were active, and 0.
        functions: names of the torch functions that were called.
        dropped_residuals: lines of additions in which a dropout's result was both residual and sublayer input.
    """

    def __init__(
        self, watched: Mapping[str, Tensor] | None = None, *, leaves: bool = False, streams_only: bool = False
    ) -> None:
        super().__init__()
        self.watched = dict(watched or {})
        self.leaves, self.streams_only = leaves, streams_only
        self.attentions: list[Attention] = []
        self.lookups: list[Lookup] = []
        self.streams: dict[str, Tensor] = {}
        self.dropped_residuals: list[Place | None] = []
        self.dropout_rates = {0.0}
        self.functions: set[str] = set()
        self._traces: dict[int, TensorTrace] = {}
        self._alive: list[Tensor] = []  # references, so that no id() is reused

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        self.functions.add(name)
        try:
            if name == "embedding" and isinstance(result, Tensor):
                return self._trace_lookup(result, [*args, *kwargs.values()])
            if not (self.leaves or self._streams_are_known()):
                self._record(func, name, args, kwargs, result)
        except Exception:  # a call that cannot be read, as under torch.func.vmap, is computed but not traced
            return result
        if self._streams_are_known():
            raise StreamsKnown
        return result

    def _streams_are_known(self) -> bool:
        return self.streams_only and len(self.streams) == len(self.watched)

    def leaf(self, name: str) -> Tensor | None:
        """Return the leaf tensor of the embeddings of watched ids, None if these were not looked up."""
        ids = self.watched[name]
        return next((lookup.leaf for lookup in self.lookups if lookup.leaf is not None and lookup.ids is ids), None)

    def trace(self, tensor: object) -> TensorTrace:
        """Return the facts about a tensor."""
        trace = self._traces.get(id(tensor))
        if trace is None and isinstance(tensor, Tensor) and is_parameter(tensor):
            return TensorTrace(parameter=tensor)
        return trace or NO_TRACE

    def _record(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        changed = args[0] if name == "__setitem__" else result
        parts = changed if isinstance(changed, (tuple, list)) else [changed]
        if not any(isinstance(part, Tensor) for part in parts):
            return
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        tensors = [value for value in flatten_values((*args, *kwargs.values())) if isinstance(value, Tensor)]
        if not tensors:
            return
        if name in _ARRANGEMENTS:
            trace = self.trace(tensors[0])
            known = trace.scores
            indexes = [None] * len(parts) if known is None else rearrange_index(func, args, kwargs, known.index)
            for part, index in zip(parts, indexes, strict=True):
                scores = None if known is None or index is None else replace(known, index=index)
                self._remember(part, replace(trace, scores=scores))
            return
        trace = self._trace_result(_Call(name, args, kwargs, tensors, parts[0]))
        for part in parts:
            self._remember(part, trace)

    def _remember(self, tensor: object, trace: TensorTrace) -> None:
        known = trace != NO_TRACE or trace.parameter is not None
        if isinstance(tensor, Tensor) and (known or id(tensor) in self._traces):
            self._alive.append(tensor)
            self._traces[id(tensor)] = trace

    def _trace_lookup(self, result: Tensor, inputs: Sequence[Any]) -> Tensor:
        """Record an embedding lookup: `functional.embedding` takes the ids first, `torch.embedding` the matrix."""
        ids, weight = sorted(
            [value for value in inputs if isinstance(value, Tensor)][:2], key=Tensor.is_floating_point
        )
        name = next((name for name, known in self.watched.items() if same_ids(ids, known)), None)
        leaf = None
        if name is not None and self.leaves:
            leaf = torch.zeros_like(result, requires_grad=True)
            result = result + leaf
        self.lookups.append(Lookup(self.watched[name] if name else ids.clone(), id(weight), leaf))
        if name is not None:
            self._remember(result, TensorTrace(embedded=frozenset({name}), sides=frozenset({name}), content=True))
        return result

    def _trace_result(self, call: _Call) -> TensorTrace:
        name, tensors = call.name, call.tensors
        traces = [self.trace(tensor) for tensor in tensors]
        if name in _READERS or name in PRODUCTS or name in _STATISTICS:
            for tensor, trace in zip(tensors, traces, strict=True):
                for side in trace.embedded:
                    self.streams.setdefault(side, tensor.detach())
        base = TensorTrace(
            content=name in _READERS or name in PRODUCTS or any(trace.content for trace in traces),
            attended=any(trace.attended for trace in traces),
            after=frozenset().union(*(trace.after for trace in traces)),
            embedded=frozenset().union(*(trace.embedded for trace in traces if name not in _READERS)),
            sides=frozenset().union(*(trace.sides for trace in traces)),
        )
        if self.streams_only:
            return base
        rate = active_dropout(name, call.args, call.kwargs) if name in DROPPING else 0.0
        self.dropout_rates.add(rate)
        if rate and name == "dropout" and traces[0].attended and traces[0].scores is None:
            identity = 1 + len(self._alive)
            return replace(traces[0], dropped=identity, after=traces[0].after | {identity})
        if name in _COPIES:
            return traces[0]
        if name == "linear":
            return replace(base, projection=self._projection(tensors[0], tensors[1], *reversed(tensors[1].shape)))
        if name == "addmm" and len(tensors) == 3:  # bias + x @ weight
            return replace(base, projection=self._projection(tensors[1], tensors[2], *tensors[2].shape))
        if name == "softmax" and traces[0].scores:
            return replace(base, scores=_trace_softmax(traces[0].scores, call))
        if name == "log_softmax":
            return replace(base, projection=traces[0].projection, factors=traces[0].factors)
        if name in PRODUCTS:
            return self._trace_product(base, call)
        if name == "scaled_dot_product_attention":
            return self._trace_fused_attention(base, call)
        if name == "multi_head_attention_forward":
            return self._trace_multi_head_attention(base, call)
        if name in ADDITIONS and len(traces) == 2:
            left, right = traces
            if left.dropped in right.after or right.dropped in left.after:
                self.dropped_residuals.append(running_place())
        return self._trace_elementwise(base, call, traces)

    def _projection(self, source: Tensor, weight: Tensor, width_in: int, width_out: int) -> Projection:
        factors = (*self.trace(source).factors, *self.trace(weight).factors)
        parameter = self.trace(weight).parameter
        weight = weight if parameter is None else parameter
        return Projection(width_in, width_out, tuple(source.shape), source, weight, factors)

    def _trace_elementwise(self, base: TensorTrace, call: _Call, traces: Sequence[TensorTrace]) -> TensorTrace:
        """Follow scores, and the layer that computed a tensor, through a function that works on each element."""
        name, tensors, result = call.name, call.tensors, call.result
        factor = scalar_factor(name, call.args)
        for tensor, trace in zip(tensors, traces, strict=True):
            if trace.scores is None or tensor.shape != result.shape:
                continue
            if not trace.scores.softmaxed and tensor.numel() == trace.scores.attention.raw.numel():
                attention = trace.scores.attention
                attention.factors += () if factor is None else (factor,)
                fill, mask = mask_and_fill(name, [*call.args, *call.kwargs.values()], tensor)
                if mask is not None:
                    attention.add_mask(fill, trace.scores.arrange(mask.expand(tensor.shape)))
            axis = softmax_axis(result) if name in SCALINGS and factor is None else None
            if axis is None or trace.scores.softmaxed:
                return replace(base, scores=trace.scores)
            return replace(base, scores=_trace_written_softmax(trace.scores, result, axis))
        first = next((trace for trace in traces if trace.projection or trace.parameter is not None), None)
        if first is None:
            largest = max(zip(tensors, traces, strict=True), key=lambda pair: pair[0].numel())[1]
            return replace(base, factors=(*largest.factors, factor) if factor is not None else ())
        if factor is not None:
            factors = (*first.factors, factor)
            return replace(base, factors=factors, projection=first.projection, parameter=first.parameter)
        same = all(
            (trace.projection is first.projection and trace.factors == first.factors)
            or (not trace.content and trace.projection is None and (trace.parameter is None or name in ADDITIONS))
            for trace in traces
        )
        if first.projection and same and (name in _JOINTS or name in MULTIPLICATIONS):
            return replace(base, factors=first.factors, projection=first.projection)
        return base

    def _trace_product(self, base: TensorTrace, call: _Call) -> TensorTrace:
        name, result = call.name, call.result
        tensors = call.tensors[::-1] if name == "__rmatmul__" else call.tensors
        if len(tensors) != 2 + (name == "baddbmm"):
            return base
        *before, left, right = tensors
        product = product_of(call.args[0] if name == "einsum" else None, left, right)
        if product is None:
            return base
        for tensor, labels, value in ((left, product.left, right), (right, product.right, left)):
            scores = self.trace(tensor).scores
            if scores is not None and len(product.summed) == 1:
                return self._trace_use(base, scores, tensor, labels.index(product.summed[0]), value, result)
        for source, weight in ((left, right), (right, left)):
            if self.trace(weight).parameter is not None and self.trace(source).parameter is None:
                width_in = math.prod(product.sizes[axis] for axis in product.summed)
                projection = self._projection(source, weight, width_in, weight.numel() // max(1, width_in))
                return replace(base, projection=replace(projection, shape=()))
        factor = 1.0
        if before:
            result, factor = (left @ right).detach(), float(call.kwargs.get("alpha", 1.0))
        scores = self._trace_scores(product, left, right, result)
        if scores is None:
            return base
        scores.attention.factors += (factor,)
        for bias in before:
            fill, hidden = additive_mask(bias)
            if fill is not None and hidden is not None:
                scores.attention.add_mask(fill, scores.arrange(hidden.expand(result.shape)))
        return replace(base, scores=scores)

    def _trace_scores(self, product: Product, left: Tensor, right: Tensor, result: Tensor) -> ScorePart | None:
        """Return the record of the scores if a product is one of queries and keys, else None."""
        queries, keys = product.free(product.left, product.right), product.free(product.right, product.left)
        if len(product.summed) != 1 or not queries or not keys or not result.is_floating_point():
            return None
        lead = [axis for axis in product.out if axis not in (queries[-1], keys[-1])]
        order = [product.out.index(axis) for axis in (*lead, queries[-1], keys[-1])]
        raw = precise(result.detach().permute(order)).clone()
        index = torch.arange(raw.numel(), device=raw.device).view(raw.shape)
        index = index.permute([order.index(axis) for axis in range(len(order))])
        rows = next((len(ids) for ids in self.watched.values()), None)
        heads = math.prod(raw.shape[1:-2]) if rows is None else max(1, math.prod(raw.shape[:-2]) // rows)
        width = product.sizes[product.summed[0]]
        return ScorePart(self._attention(left, right, raw, width, heads), index)

    def _attention(self, query: Tensor, key: Tensor, raw: Tensor, width: int, heads: int) -> Attention:
        """Return the record of an attention; raw is the product of its queries and keys, (lead, T, S)."""
        left, right = self.trace(query), self.trace(key)
        query, key = (tensor.detach().clone() for tensor in (query, key))  # a cache is written again in place
        return Attention(
            raw.size(-2), raw.size(-1), width, heads, (*left.factors, *right.factors), raw, query, key,
            (left.sides, right.sides), running_place(), left.projection, right.projection,
        )  # fmt: skip

    def _trace_use(
        self, base: TensorTrace, scores: ScorePart, weights: Tensor, axis: int, value: Tensor, result: Tensor
    ) -> TensorTrace:
        """Record an attention when its weights are multiplied with values; the product sums over one axis."""
        attention, contracted = scores.attention, scores.axis(axis)
        if contracted == "other":  # heads are mixed
            return replace(base, scores=scores) if result.shape == scores.index.shape else base
        attention.used = scores.arrange(weights)
        if attention.used is None:
            return base
        if not scores.softmaxed:
            summed = softmax_axis(weights)
            if summed is None:
                return base
            _trace_written_softmax(scores, weights, summed)
        attention.value, attention.value_projection = value.detach().clone(), self.trace(value).projection
        if contracted == "queries":
            attention.swap_axes()
        self.attentions.append(attention)
        return replace(base, attended=True)

    def _trace_fused_attention(self, base: TensorTrace, call: _Call) -> TensorTrace:
        named = arguments_of(call.name, call.args, call.kwargs)
        query, key, mask, scale = named["query"], named["key"], named.get("attn_mask"), named.get("scale")
        precise_key = precise(key.detach())
        if query.dim() > 3 and key.size(-3) != query.size(-3):
            precise_key = precise_key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        raw = precise(query.detach()) @ precise_key.transpose(-1, -2)
        factor = query.size(-1) ** -0.5 if scale is None else scale
        heads = query.size(-3) if query.dim() > 3 else 1
        attention = self._attention(query, key, raw, query.size(-1), heads)
        attention.factors += (factor,)
        logits = raw * factor
        if mask is not None:
            logits = _mask_scores(attention, logits, ~mask if mask.dtype == torch.bool else mask)
        if named.get("is_causal"):
            logits = _mask_scores(attention, logits, torch.ones_like(raw, dtype=torch.bool).triu(1))
        return self._finish(base, attention, logits, named["value"])

    def _trace_multi_head_attention(self, base: TensorTrace, call: _Call) -> TensorTrace:
        """Record `functional.multi_head_attention_forward`, time first: (T, B, D); its scores are unknown."""
        named = arguments_of(call.name, call.args, call.kwargs)
        query, key, heads = named["query"], named["key"], named["num_heads"]
        padding, mask = named.get("key_padding_mask"), named.get("attn_mask")
        rows = query.size(1) if query.dim() == 3 else 1
        raw = precise(torch.zeros(rows, heads, len(query), len(key), device=query.device))
        head = named["embed_dim_to_check"] // heads
        attention = self._attention(query, key, raw, head, heads)
        attention.factors, attention.fixed_scale = (head**-0.5,), True
        logits = raw
        if padding is not None:
            logits = _mask_scores(attention, logits, padding[..., None, None, :])
        if mask is not None:
            logits = _mask_scores(attention, logits, mask.unflatten(0, (-1, heads)) if mask.dim() == 3 else mask)
        return self._finish(base, attention, logits, named["value"])

    def _finish(self, base: TensorTrace, attention: Attention, logits: Tensor, value: Tensor) -> TensorTrace:
        attention.logits, attention.value = logits, value.detach().clone()
        attention.value_projection = self.trace(value).projection
        attention.weights = attention.used = logits.softmax(-1)
        self.attentions.append(attention)
        return replace(base, attended=True)


def _trace_softmax(scores: ScorePart, call: _Call) -> ScorePart:
    attention, logits = scores.attention, call.tensors[0]
    axis = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
    if axis is None:  # the default axis of functional.softmax
        axis = 0 if logits.dim() in (0, 1, 3) else 1
    attention.softmax_axis = scores.axis(axis)
    attention.logits, attention.weights = scores.arrange(logits), scores.arrange(call.result)
    return replace(scores, softmaxed=True)


def _trace_written_softmax(scores: ScorePart, weights: Tensor, axis: int) -> ScorePart:
    """Record the weights of a softmax that is written out; their logarithms replace its unknown input."""
    attention = scores.attention
    attention.softmax_axis, attention.weights = scores.axis(axis), scores.arrange(weights)
    attention.logits = None if attention.weights is None else attention.weights.log()
    return replace(scores, softmaxed=True)


def _mask_scores(attention: Attention, logits: Tensor, mask: Tensor) -> Tensor:
    """Apply a mask to logits and record it: a bool mask hides where it is True, numbers are added."""
    if mask.dtype == torch.bool:
        return logits.masked_fill(mask, -math.inf)
    fill, hidden = additive_mask(mask)
    if fill is not None and hidden is not None:
        attention.add_mask(fill, hidden.expand(logits.shape))
    return logits + mask.detach()
