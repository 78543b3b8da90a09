"""Infer the roles of a model's arguments from its signature: ids of a side, a mask, lengths, or something else.

Names are only evidence of what the author meant: a call that is built from them is tried, and reported as a guess.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

Role = Literal[
    "source", "target", "memory", "source mask", "target mask", "cross mask", "source lengths", "target lengths",
    "positions", "segments", "flag", "start", "state", "label", "unknown",
]  # fmt: skip
UNKNOWN: Role = "unknown"
_PLAIN = ("source", "target", "label", UNKNOWN)  # roles of arguments that may be ids

# Beginnings of the words that name a side, and words that name another role.
_TARGET = re.compile(r"^(?:trg|tgt|target|dec|out|look|ahead|causal|future|subsequent|nopeak)|^(?:y|tar|peak)$")
_SOURCE = re.compile(r"^(?:src|source|enc|inp|mem)|^(?:x|cross|context)$")
_LENGTHS = {"len", "lens", "length", "lengths"}
_OTHERS: Mapping[Role, re.Pattern[str]] = {
    "segments": re.compile(r"^(?:segments?|type|types)$"),
    "start": re.compile(r"^(?:start|offset)$"),
    "positions": re.compile(r"^pos"),
    "flag": re.compile(r"^(?:train|training|is|return|use|need|needs|do|inference|eval|verbose|deterministic)$"),
    "state": re.compile(r"^(?:cache|past|states?|kv)"),
}


@dataclass(frozen=True)
class Parameter:
    """Argument of a function.

    Attributes:
        name: as the author wrote it.
        required: whether it has no default.
        by_name: whether it is keyword-only.
    """

    name: str
    required: bool = True
    by_name: bool = False


def parameters_of(function: Any) -> list[Parameter] | None:
    """Return the arguments of a function or module, None where they cannot be read, as with *args."""
    if isinstance(function, torch.jit.ScriptModule):
        forward: Any = function.forward
        return [
            Parameter(parameter.name, not parameter.has_default_value())
            for parameter in forward.schema.arguments[1:]
        ]
    try:
        parameters = inspect.signature(function.forward if isinstance(function, nn.Module) else function).parameters
    except (TypeError, ValueError):
        return None
    kinds = inspect.Parameter
    if any(parameter.kind is kinds.VAR_POSITIONAL for parameter in parameters.values()):
        return None
    return [
        Parameter(parameter.name, parameter.default is kinds.empty, parameter.kind is kinds.KEYWORD_ONLY)
        for parameter in parameters.values()
        if parameter.kind is not kinds.VAR_KEYWORD
    ]


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: srcKeyPaddingMask and src_key_padding_mask are four words."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[^a-z]+", apart.lower()) if word]


def role_of(name: str, sides: Sequence[str]) -> Role:
    """Return the role that the name of an argument suggests, for a model of the given sides."""
    words = words_of(name)
    target, source = (any(side.search(word) for word in words) for side in (_TARGET, _SOURCE))
    is_target = sides[-1] == "target" and (len(sides) == 1 or target)
    if any(word.endswith(("mask", "masks")) or word.startswith("pad") for word in words):
        both = bool({"tgt", "trg", "dec", "target", "decoder"} & {*words}) and bool(
            {"src", "enc", "source", "encoder"} & {*words}
        )
        if len(sides) == 2 and (both or {"memory", "mem", "cross"} & {*words}):
            return "cross mask"
        return "target mask" if is_target else "source mask"
    if _LENGTHS & {*words} and "max" not in words:
        return "target lengths" if is_target else "source lengths"
    outcomes = ("out", "hid", "state", "feature", "repr", "embed")
    if {"memory", "mem"} & {*words} or (source and any(word.startswith(outcomes) for word in words)):
        return "memory"
    if words[:1] == ["output"] and len(words) > 1:
        return "flag"
    for role, pattern in _OTHERS.items():
        if any(pattern.search(word) for word in words):
            return role
    if words in (["label"], ["labels"], ["target"], ["targets"]):
        return "label"
    if target and "target" in sides:
        return "target"
    return "source" if source and "source" in sides else UNKNOWN


def assign_roles(parameters: Sequence[Parameter], sides: Sequence[str]) -> list[tuple[Parameter, Role]]:
    """Return each argument with its role; ids are in the order of the sides, unless their names say otherwise."""
    named = [(parameter, role_of(parameter.name, sides)) for parameter in parameters]
    chosen = [index for index, (_, role) in enumerate(named) if role in _PLAIN][: len(sides)]
    chosen_roles = [named[index][1] for index in chosen]
    turned = len(sides) == 2 and chosen_roles[:1] == ["target"] and "source" in chosen_roles
    order = sides[::-1] if turned else sides
    roles: dict[int, Role] = dict(zip(chosen, order, strict=False))  # type: ignore[arg-type]
    return [
        (parameter, roles.get(index, UNKNOWN if role in ("source", "target") else role))
        for index, (parameter, role) in enumerate(named)
    ]


def decoder_roles(parameters: Sequence[Parameter]) -> list[tuple[Parameter, Role]]:
    """Return each argument of a function decode with its role: the target, the encoder's output, and others."""
    named = [(parameter, role_of(parameter.name, ("source", "target"))) for parameter in parameters]
    first: Callable[[Iterable[int]], int | None] = lambda indices: next(iter(indices), None)  # noqa: E731
    memory = first(index for index, (_, role) in enumerate(named) if role == "memory")
    plain = [index for index, (_, role) in enumerate(named) if role in _PLAIN]
    target = first([index for index in plain if named[index][1] in ("target", "label")] or plain)
    if memory is None:
        states = [index for index, (_, role) in enumerate(named) if role == "state"]
        memory = first([index for index in plain if index != target] or states)
    roles: dict[int | None, Role] = {target: "target", memory: "memory"}
    return [
        (parameter, roles.get(index, UNKNOWN if role in _PLAIN else role))
        for index, (parameter, role) in enumerate(named)
    ]


def call_with(
    function: Callable[..., Any], parameters: Sequence[tuple[Parameter, Role]], values: Mapping[str, Any]
) -> Any:
    """Call a function with values by the names of its arguments; the other arguments keep their defaults."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    left_out = False
    for parameter, _ in parameters:
        if parameter.name not in values:
            left_out = True
        elif parameter.by_name or left_out:
            named[parameter.name] = values[parameter.name]
        else:
            positional.append(values[parameter.name])
    return function(*positional, **named)
