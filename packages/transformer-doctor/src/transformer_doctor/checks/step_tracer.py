"""Trace what a training step feeds to a model, and what its loss is computed from.

The tracer knows no module: a `TorchFunctionMode` sees the embedding lookups and the tensors that a softmax or a
loss reads; hooks see the gradients of these tensors.

Shapes: B batch, T length, V width of the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer_doctor.checks.update_tracer import UpdateTracer
from transformer_doctor.torch_calls import DROPPING, PRODUCTS, active_dropout

_LINEAR = PRODUCTS | {"linear", "addmm"}
_NORMALIZERS = {"log_softmax", "cross_entropy"}  # have a logarithm, so that their inputs must not be probabilities
_SUM_ROUNDING = 0.03  # of a sum of probabilities in bfloat16
_SOFTMAXES = {"softmax", "log_softmax", "cross_entropy", "logsumexp"}
_LOSSES = ("cross_entropy_loss", "nll_loss_nd")  # of torch._C._nn, by which torch.nn computes a cross-entropy
IGNORED = -1  # label of a position that the loss ignores


@dataclass
class FedIds:
    """Token ids that a step looked up in an embedding matrix, or gave to a module.

    Attributes:
        ids: as they were looked up.
        table: id() of the matrix, 0 for the ids of a module.
        reader: id() of the matrix or the module.
        order: number of the observation in its step.
        padding_idx: id whose row gets no gradient, or None.
        gradient: largest gradient of the embedding of each id, shaped as `ids`; None where none can arrive.
    """

    ids: Tensor
    table: int
    order: int
    padding_idx: int | None = None
    gradient: Tensor | None = None
    reader: int = 0


@dataclass
class ScoreGradient:
    """Scores that a loss was computed from, and the gradient of the loss with respect to them: (..., V).

    Attributes:
        values: the scores.
        order: number of the observation.
        update: number of optimizer steps before it.
        normalized: whether a softmax or a cross-entropy read them, as they are.
        gradient: None before the backward pass.
        labels: those that a loss of torch.nn was given for them (...), see `watch_losses`; None where none was.
    """

    values: Tensor
    order: int
    update: int
    normalized: bool
    gradient: Tensor | None = None
    labels: Tensor | None = None


class StepTracer(TorchFunctionMode):
    """Mode that records lookups, scores of a width and active dropouts, in the order in which they are computed.

    Attributes:
        fed, scores: recorded lookups and scores.
        active_dropouts: number of dropouts that dropped something.
        probabilities: number of losses, or logarithms of a softmax, that read results of a softmax.

    Args:
        widths: widths that scores may have, V and that of the output of the model.
        module: holds the weights; outputs of its modules are recorded too, where no function was seen.
        updates: tracer of the updates, to number them.
        keep: by the number of an observation, a mask (...) of the scores whose gradients go on; others become 0.
    """

    def __init__(
        self,
        *widths: int,
        module: nn.Module | None = None,
        updates: UpdateTracer | None = None,
        keep: Mapping[int, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.widths, self.module, self.updates, self.kept = widths, module, updates, keep or {}
        self.fed: list[FedIds] = []
        self.scores: list[ScoreGradient] = []
        self.active_dropouts = 0
        self.probabilities = 0
        self.count = 0
        self._known: set[int] = set()
        self._alive: list[Tensor] = []  # references, so that no id() is reused
        self._hooks = ExitStack()

    def __enter__(self) -> StepTracer:
        for part in self.module.modules() if self.module is not None else ():
            try:
                self._hooks.callback(part.register_forward_pre_hook(self._watch_inputs, with_kwargs=True).remove)
                self._hooks.callback(part.register_forward_hook(self._watch_output).remove)
            except (RuntimeError, AttributeError):  # a scripted module takes no hooks
                continue
        self._hooks.callback(watch_losses(self._record_labels))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._hooks.close()

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _SOFTMAXES and args:
            self._record_softmax(name, args, kwargs)
        result = func(*args, **kwargs)
        if name == "embedding":
            self._record_lookup(result, *args, **kwargs)
        elif name == "__getitem__" and isinstance(args[1], Tensor) and args[0].is_leaf:
            self._record_lookup(result, args[1], args[0])
        elif name in _LINEAR:
            self._record_scores(result, normalized=False)
        elif name in DROPPING:
            self.active_dropouts += active_dropout(name, args, kwargs) > 0
        return result

    def of_first_width(self) -> StepTracer:
        """Keep only the scores of the first width that has gradients; others are hidden states."""
        trained = [record for record in self.scores if record.gradient is not None]
        known = [[record for record in trained if record.values.size(-1) == width] for width in self.widths]
        self.scores = next(filter(None, known), self.scores)
        return self

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _record_softmax(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        scores = args[0]
        axis = kwargs.get("dim", args[1] if name != "cross_entropy" and len(args) > 1 else None)
        if not isinstance(scores, Tensor) or scores.dim() < 2:
            return
        axis = 1 if name == "cross_entropy" else axis if isinstance(axis, int) else -1
        if name in _NORMALIZERS and scores.requires_grad and scores.size(axis) in self.widths:
            values = scores.detach().float()
            sums_of_one = (values.sum(axis) - 1).abs() < _SUM_ROUNDING
            self.probabilities += bool((values >= 0).all()) and bool(sums_of_one.all())
        self._record_scores(scores, normalized=True, axis=axis)

    def _record_scores(self, scores: Any, *, normalized: bool, axis: int = -1) -> None:
        if not isinstance(scores, Tensor) or not scores.requires_grad or scores.dim() < 2:
            return
        if scores.size(axis) not in self.widths or id(scores) in self._known:
            return
        self._known.add(id(scores))
        self._alive.append(scores)
        update = 0 if self.updates is None else self.updates.count
        record = ScoreGradient(scores.detach().movedim(axis, -1), self._next(), update, normalized)

        def keep(gradient: Tensor) -> Tensor | None:
            record.gradient = gradient.detach().movedim(axis, -1).clone()
            mask = self.kept.get(record.order)
            return None if mask is None else gradient * mask.to(gradient).unsqueeze(axis)

        scores.register_hook(keep)
        self.scores.append(record)

    def _record_labels(self, scores: Tensor, labels: Tensor) -> None:
        for record in reversed(self.scores):
            shape = record.values.shape
            if shape[:-1].numel() == labels.numel() and shape.numel() == scores.numel() and record.labels is None:
                record.labels = labels.reshape(shape[:-1])
                return

    def _record_lookup(self, result: Any, ids: Tensor, weight: Tensor, *rest: Any, **options: Any) -> None:
        """Record looked-up ids: `functional.embedding` takes the ids first, `torch.embedding` the matrix."""
        if ids.is_floating_point():
            ids, weight = weight, ids
        if (
            ids.is_floating_point()
            or ids.dtype == torch.bool
            or weight.dim() != 2
            or not weight.is_floating_point()
        ):
            return
        padding = options.get("padding_idx", rest[0] if rest else None)
        padding = None if padding is None or padding == -1 else int(padding) % len(weight)
        record = FedIds(ids.detach().clone(), id(weight), self._next(), padding, reader=id(weight))

        def keep(gradient: Tensor) -> None:
            strength = gradient.detach().abs().amax(-1)
            record.gradient = torch.maximum(
                strength.new_zeros(()) if record.gradient is None else record.gradient, strength
            )

        if isinstance(result, Tensor) and result.requires_grad:
            record.gradient = result.new_zeros(result.shape[:-1])
            result.register_hook(keep)
        self.fed.append(record)

    def _watch_inputs(self, module: nn.Module, inputs: Sequence[Any], named: Mapping[str, Any]) -> None:
        for value in (*inputs, *named.values()):
            if isinstance(value, Tensor) and value.dim() == 2 and value.dtype in (torch.int64, torch.int32):
                self.fed.append(FedIds(value.detach().clone(), 0, self._next(), reader=id(module)))

    def _watch_output(self, module: nn.Module, inputs: Sequence[Any], output: Any) -> None:
        values = output.values() if isinstance(output, Mapping) else output
        for scores in values if isinstance(output, (tuple, list, Mapping)) else (output,):
            self._record_scores(scores, normalized=False)


def watch_losses(after: Callable[[Tensor, Tensor], None]) -> Callable[[], None]:
    """Call a function with the scores and the labels of each cross-entropy of torch.nn; return what ends it.

    A label is IGNORED where it is `ignore_index`, or its class has no weight. Losses of each position, which the
    program itself weighs, and probabilities as labels are left out.
    """
    plain = {name: vars(torch._C._nn)[name] for name in _LOSSES}

    def watched(name: str) -> Callable[..., Tensor]:
        def loss(
            scores: Tensor, labels: Tensor, weight: Any = None, reduction: int = 1, ignored: int = -100, *rest: Any
        ) -> Tensor:
            result: Tensor = plain[name](scores, labels, weight, reduction, ignored, *rest)
            if reduction and type(labels) is Tensor and not labels.is_floating_point() and result.requires_grad:
                left_out = labels == ignored
                if weight is not None:
                    left_out = left_out | (weight[labels.masked_fill(left_out, 0)] == 0)
                after(scores, labels.masked_fill(left_out, IGNORED))
            return result

        return loss

    vars(torch._C._nn).update({name: watched(name) for name in _LOSSES})
    return lambda: vars(torch._C._nn).update(plain)
