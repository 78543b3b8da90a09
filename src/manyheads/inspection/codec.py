"""Conversion of frozen data objects to plain JSON values and back.

An object is a dataclass whose fields are numbers, strings, None, other such objects, tuples of them, dictionaries
with string keys, and arrays of float32. In JSON an array is a list of lists of numbers with 6 decimals, or,
packed, an object `{"shape", "low", "high", "uint16"}`: base64 of little-endian 16-bit numbers u, each of which
stands for low + (high - low) * u / 65535.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, SerializationInfo, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from manyheads.errors import UsageError

_DECIMALS = 6
_MAX_CODE = 65_535


def _array_to_json(array: NDArray[np.float32], info: SerializationInfo) -> Any:
    """Return an array as nested lists of numbers with 6 decimals; in the context "packed", as 16-bit numbers.

    The packed form takes a fifth of the size, and is exact to 1/131070 of the range of the values.
    """
    if not info.context:
        return np.round(array.astype(np.float64), _DECIMALS).tolist()
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    low, high = min(low, 0.0), max(high, 1.0)
    codes = np.round((array.astype(np.float64) - low) / (high - low) * _MAX_CODE).astype("<u2")
    text = base64.b64encode(codes.tobytes()).decode("ascii")
    return {"shape": list(array.shape), "low": low, "high": high, "uint16": text}


def array_from_json(value: Any) -> NDArray[np.float32]:
    """Return an array from its listed or packed form."""
    try:
        if not isinstance(value, dict):
            return np.array(value, dtype=np.float32)
        codes = np.frombuffer(base64.b64decode(value["uint16"], validate=True), dtype="<u2")
        low, high = float(value["low"]), float(value["high"])
        return (low + (high - low) * (codes / _MAX_CODE)).astype(np.float32).reshape(value["shape"])
    except (ValueError, TypeError, KeyError) as error:
        raise PydanticCustomError("array", "no array of numbers: {error}", {"error": str(error)}) from error


Array = Annotated[NDArray[np.float32], PlainValidator(array_from_json), PlainSerializer(_array_to_json)]


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    """Return pydantic's reader and writer of a dataclass; fields that a later version may add are ignored."""
    return TypeAdapter(kind)


def to_json_values(value: object, *, packed: bool = False) -> dict[str, Any]:
    """Return an object as JSON values; `packed` sets the form of its arrays."""
    writer = _adapter(type(value))  # type: ignore[arg-type]  # mypy takes a class for no Hashable
    values: dict[str, Any] = writer.dump_python(value, mode="json", context=packed)
    return values


def from_json_values(kind: type, values: Mapping[str, Any], where: str) -> Any:
    """Return an object of the class `kind` from JSON values; `where` is their name in messages.

    Raises:
        UsageError: the values do not fit the class; the message names the field.
    """
    try:
        return _adapter(kind).validate_json(json.dumps(dict(values)), strict=True)
    except ValidationError as error:
        raise UsageError(_message_of(error, where)) from error


def _message_of(error: ValidationError, where: str) -> str:
    """Return the first mistake in JSON values, with its field."""
    first = error.errors()[0]
    *path, name = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
    match first["type"]:
        case "missing":
            field = f"{where}{''.join(path)} has no {name[1:]!r}"
            return f"{field}: it is no inspection, or one of another version."
        case "array":
            return f"{where}{''.join(path)}{name} is {first['msg']}."
    kind = type(first["input"]).__name__
    return f"{where}{''.join(path)}{name} is {kind}: {first['msg'].replace('Input', 'it', 1)}."
