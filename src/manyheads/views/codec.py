"""Conversion of frozen data objects to plain JSON values and back.

An object is a dataclass whose fields are numbers, texts, truth values, None, other such objects, tuples of them,
and arrays of float32. In JSON an array is a list of lists of numbers with 6 decimals, or, packed, an object
`{"shape", "low", "high", "uint16"}`: base64 of little-endian 16-bit numbers u, each of which stands for
low + (high - low) * u / 65535.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import UsageError

Array = NDArray[np.float32]
_DECIMALS = 6
_MAX_CODE = 65_535
_JSON_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
}  # others are objects


def to_json_values(value: Any, *, packed: bool = False) -> dict[str, Any]:
    """Return an object as JSON values; `packed` sets the form of its arrays."""
    return {field.name: _to_json(getattr(value, field.name), packed) for field in fields(value)}


def _to_json(value: Any, packed: bool) -> Any:
    if isinstance(value, np.ndarray):
        return _pack(value) if packed else np.round(value.astype(np.float64), _DECIMALS).tolist()
    if isinstance(value, tuple):
        return [_to_json(item, packed) for item in value]
    return to_json_values(value, packed=packed) if is_dataclass(value) else value


def _pack(array: Array) -> dict[str, Any]:
    """Return an array as 16-bit numbers: a fifth of the size, and exact to 1/131070 of the range of the values."""
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    low, high = min(low, 0.0), max(high, 1.0)
    codes = np.round((array.astype(np.float64) - low) / (high - low) * _MAX_CODE).astype("<u2")
    text = base64.b64encode(codes.tobytes()).decode("ascii")
    return {"shape": list(array.shape), "low": low, "high": high, "uint16": text}


def array_from_json(value: Any) -> Array:
    """Return an array from its listed or packed form.

    Raises:
        ValueError, TypeError, KeyError: it is neither.
    """
    if not isinstance(value, dict):
        return np.array(value, dtype=np.float32)
    codes = np.frombuffer(base64.b64decode(value["uint16"], validate=True), dtype="<u2")
    low, high = float(value["low"]), float(value["high"])
    return (low + (high - low) * (codes / _MAX_CODE)).astype(np.float32).reshape(value["shape"])


def from_json_values(kind: type, values: Mapping[str, Any], where: str) -> Any:
    """Return an object of the class `kind` from JSON values; `where` is their name in messages.

    Keys that are no fields, as a later version may add, are ignored.

    Raises:
        UsageError: the values do not fit the class; the message names the field.
    """
    kinds = _field_kinds(kind)
    for name in kinds:
        if name not in values:
            raise UsageError(f"{where} has no {name!r}: it is no inspection, or one of another version.")
    return kind(**{name: _from_json(part, values[name], f"{where}.{name}") for name, part in kinds.items()})


@cache
def _field_kinds(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _from_json(kind: Any, value: Any, where: str) -> Any:
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if kind == Array:
        try:
            return array_from_json(value)
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{where} is no array of numbers: {error}.") from error
    if NoneType in parts:
        return None if value is None else _from_json(parts[0], value, where)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return from_json_values(origin, value, where)
    if origin is tuple and isinstance(value, list) and (parts[-1] is ... or len(value) == len(parts)):
        kinds = parts[:1] * len(value) if parts[-1] is ... else parts
        pairs = enumerate(zip(kinds, value, strict=True))
        return tuple(_from_json(part, item, f"{where}[{index}]") for index, (part, item) in pairs)
    if type(value) is kind or (kind is float and type(value) is int):
        return kind(value)
    raise UsageError(f"{where} is {type(value).__name__}: it should be {_JSON_KINDS.get(origin, 'an object')}.")
