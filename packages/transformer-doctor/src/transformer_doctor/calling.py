"""Ways to call a model with token ids: ids and masks as arguments, or in one batch, batch or time first.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transformer_doctor.errors import UsageError
from transformer_doctor.mask_guesses import MaskStyle
from transformer_doctor.model_output import tensor_of
from transformer_doctor.signatures import (
    UNKNOWN,
    Parameter,
    Role,
    assign_roles,
    call_with,
    decoder_roles,
    parameters_of,
    role_of,
)

Container = Literal["arguments", "mapping", "tuple"]
Arguments = Sequence[tuple[Parameter, Role]]


@dataclass(frozen=True)
class Callee:
    """Function of a model, and the roles of its arguments.

    Attributes:
        function: called with the values of `arguments`.
        arguments: each argument with its role; None where the signature cannot be read.
        call: function of values by name that calls it.
    """

    function: Callable[..., Any]
    arguments: Arguments | None
    call: Callable[[Mapping[str, Any]], Any]

    def aids(self, *, required: bool = False) -> dict[str, Role]:
        """Return the arguments that are masks or lengths with their roles, with `required` the required ones."""
        return {
            parameter.name: role
            for parameter, role in self.arguments or ()
            if role.endswith(("mask", "lengths")) and (parameter.required or not required)
        }

    def unknown(self) -> list[str]:
        """Return the required arguments whose values are unknown."""
        return [arg.name for arg, role in self.arguments or () if arg.required and role in (UNKNOWN, "memory")]


@dataclass(frozen=True)
class CallForm:
    """One way to call a model.

    Attributes:
        style: how its masks are written; None leaves out masks that have a default.
        time_first: ids are (S, B) and (T, B), and logits (T, B, V).
        container: ids are arguments, or entries of one argument: a mapping by names, or a tuple.
        labels: the ids are also given as labels, so that every position is scored.
        left_padding: padding before the text must change nothing.
        placed: positions that have a default are given too.
    """

    style: MaskStyle | None = None
    time_first: bool = False
    container: Container = "arguments"
    labels: bool = False
    left_padding: bool = False
    placed: bool = False


def callee_of(model: Any, sides: Sequence[str]) -> Callee:
    """Return the function of a model that takes ids: the model itself, or its encode and decode.

    Raises:
        UsageError: the model has neither.
    """
    plain = inspect.getattr_static(nn.Module, "forward")
    if callable(model) and inspect.getattr_static(type(model), "forward", None) is not plain:
        parameters = parameters_of(model)
        arguments = None if parameters is None else assign_roles(parameters, sides)
        if arguments is None:
            return Callee(model, None, lambda values: model(*values.values()))
        return Callee(model, arguments, partial(call_with, model, arguments))
    if hasattr(model, "encode") and hasattr(model, "decode"):
        return _encode_and_decode(model)
    missing = "has neither forward nor" if isinstance(model, nn.Module) else "can neither be called nor has it"
    raise UsageError(
        f"{type(model).__name__} {missing} encode and decode. Examine a module, or a function: "
        f"{as_function(sides)}."
    )


def as_function(sides: Sequence[str]) -> str:
    """Return the text of a lambda that adapts a model of any signature."""
    return f"lambda {', '.join(sides)}: model(...), all arguments by name"


def _encode_and_decode(model: Any) -> Callee:
    encoder_parameters, decoder_parameters = parameters_of(model.encode), parameters_of(model.decode)

    def both(values: Mapping[str, Any]) -> Any:
        memory = call_with(model.encode, encode, values)
        if isinstance(memory, tuple):  # memory and further arguments of decode
            return model.decode(values[target], *memory)
        return call_with(model.decode, decode, {**values, name_of_memory: memory})

    if encoder_parameters is None or decoder_parameters is None:
        encoder_parameters, decoder_parameters = [Parameter("source")], [Parameter("target"), Parameter("memory")]
    encode, decode = assign_roles(encoder_parameters, ("source",)), decoder_roles(decoder_parameters)
    name_of_memory = next((parameter.name for parameter, role in decode if role == "memory"), "memory")
    inputs = {parameter.name for parameter, role in encode if role == "source"}
    # an argument name that is the source in encode and the target in decode is changed in decode
    decode = [
        (Parameter(f"{parameter.name} of decode", parameter.required, parameter.by_name), role)
        if role == "target" and parameter.name in inputs
        else (parameter, role)
        for parameter, role in decode
    ]
    target = next((parameter.name for parameter, role in decode if role == "target"), "target")
    # unknown arguments of decode may be returned by encode, in a tuple
    decode_only = [
        (replace(parameter, required=parameter.required and role != UNKNOWN), role)
        for parameter, role in decode
        if role != "memory" and parameter not in [other for other, _ in encode]
    ]
    return Callee(both, [*encode, *decode_only], both)


class _GuessedBatch(dict[str, Any]):
    """Batch that makes its entries on access, by item or by attribute."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        value = self._make(name) if isinstance(name, str) else None
        if value is None:
            raise KeyError(name)
        return value

    def __getattr__(self, name: str) -> Any:
        value = None if name.startswith("__") else self._make(name)
        if value is None:
            raise AttributeError(f"the batch has no {name} whose meaning its name tells")
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._make(name) is not None)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry, or the default; labels are only made on access by item or by attribute."""
        return default if role_of(name, ("source", "target")) == "label" or name not in self else self[name]


def caller(
    callee: Callee, sides: Sequence[str], form: CallForm, pad: int | None, width: int | None
) -> Callable[..., Tensor]:
    """Return a function of the ids of each side, batch first, that returns the scores of a model."""

    def call(*ids: Tensor) -> Tensor:
        inputs = {side: rows.t() if form.time_first else rows for side, rows in zip(sides, ids, strict=True)}
        real = {side: rows != pad if pad is not None else torch.ones_like(rows, dtype=torch.bool)
                for side, rows in zip(sides, ids, strict=True)}  # fmt: skip
        if len(sides) == 2:  # the begin mark may have the id of padding
            real["target"][:, 0] = True
        return batch_first(
            call_form(callee, sides, form, inputs, real), inputs[sides[-1]], width, time_first=form.time_first
        )

    return call


def batch_first(output: Any, ids: Tensor, width: int | None, *, time_first: bool) -> Tensor:
    """Return the scores in the output of a model for ids (B, T), with `time_first` (T, B), as (B, T, V)."""
    scores = tensor_of(output, width)
    if not time_first:
        return scores
    if scores.dim() == 2 and len(scores) == ids.numel():  # (T * B, V)
        scores = scores.unflatten(0, ids.shape)
    return scores.transpose(0, 1) if scores.dim() == 3 else scores


def call_form(
    callee: Callee, sides: Sequence[str], form: CallForm, ids: Mapping[str, Tensor], real: Mapping[str, Tensor]
) -> Any:
    """Call a model in a form, with ids and real tokens in its order of axes; return its output."""
    device = ids[sides[0]].device
    masks = {name: role for name, role in callee.aids().items() if role.endswith("mask")}

    def value(name: str, role: Role, style: MaskStyle) -> Any:
        if role in ("source", "target"):
            return ids[role]
        if role == "label":
            return ids[sides[-1]]
        if role.endswith("mask"):
            return style.make(name, role, {**masks, name: role}, real).to(device)
        if role.endswith("lengths"):
            return real[role.removesuffix(" lengths")].sum(1)
        if role == "segments":
            return torch.zeros_like(ids[sides[0]])
        if role == "positions":
            rows = real[sides[-1]]
            positions = torch.arange(rows.size(1), device=device).expand(rows.shape)
            positions = (rows.long().cumsum(1) - 1).clamp_min(0) if form.left_padding else positions
            return positions.t() if form.time_first else positions
        return {"flag": False, "start": 0}.get(role)

    def entry(name: str) -> Any:
        role = role_of(name, sides)
        return None if role in (UNKNOWN, "memory") else value(name, role, form.style or MaskStyle())

    if form.container == "mapping":
        return callee.function(_GuessedBatch(entry))
    if form.container == "tuple":
        return callee.function(tuple(ids[side] for side in sides))
    if callee.arguments is None:
        return callee.call(dict(ids))
    values = {
        parameter.name: value(parameter.name, role, form.style or MaskStyle())
        for parameter, role in callee.arguments
        if role in sides
        or (parameter.required and role not in (UNKNOWN, "memory"))
        or (form.style is not None and role.endswith(("mask", "lengths")))
        or (form.labels and role == "label")
        or (form.placed and role == "positions")
    }
    return callee.call(values)
