"""Frozen data objects as plain JSON values, and back.

An object is a dataclass whose fields are numbers, strings, None, other such objects, tuples of them, dictionaries
with string keys, and arrays of float32. In JSON an array is a list of lists of numbers with 6 decimals, or,
packed, an object `{"shape", "low", "high", "uint16"}`: base64 of little-endian 16-bit numbers u, each of which
stands for low + (high - low) * u / 65535.
"""

from __future__ import annotations

import base64
import binascii
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import UsageError

__all__ = ["Array", "listed", "packed", "plain", "rebuilt"]

Array = NDArray[np.float32]
DECIMALS = 6
MOST_CODE = 65_535


def listed(array: Array) -> Any:
    """Return an array as nested lists of numbers with 6 decimals."""
    return np.round(array.astype(np.float64), DECIMALS).tolist()


def packed(array: Array) -> dict[str, Any]:
    """Return an array as 16-bit numbers in base64: a fifth of the size, exact to 1/131070 of its range."""
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    low, high = min(low, 0.0), max(high, 1.0)
    codes = np.round((array.astype(np.float64) - low) / (high - low) * MOST_CODE).astype("<u2")
    text = base64.b64encode(codes.tobytes()).decode("ascii")
    return {"shape": list(array.shape), "low": low, "high": high, "uint16": text}


def plain(value: Any, array: Callable[[Array], Any] = listed) -> Any:
    """Return an object as JSON values; `array` converts arrays."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(vars(value)[field.name], array) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, tuple | list):
        return [plain(item, array) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item, array) for key, item in value.items()}
    return value


def rebuilt(wanted: Any, value: Any, where: str = "the document") -> Any:
    """Return an object of the wanted type from JSON values.

    Raises:
        UsageError: the values are not those of such an object; the message names the field.
    """
    if is_dataclass(wanted) and isinstance(wanted, type):
        return rebuilt_object(wanted, value, where)
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        (kind,) = [one for one in inner if one is not type(None)]
        return None if value is None else rebuilt(kind, value, where)
    if origin is np.ndarray:
        return rebuilt_array(value, where)
    if origin is tuple:
        items = of_type(list, value, where)
        kinds = [inner[0]] * len(items) if inner[-1] is Ellipsis else list(inner)
        if len(kinds) != len(items):
            raise UsageError(f"{where} holds {len(items)} values, not {len(kinds)}.")
        return tuple(
            rebuilt(kind, item, f"{where}[{index}]")
            for index, (kind, item) in enumerate(zip(kinds, items, strict=True))
        )
    if origin is dict:
        return {key: rebuilt(inner[1], item, f"{where}.{key}") for key, item in of_type(dict, value, where).items()}
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return of_type(wanted, value, where)


def rebuilt_object(wanted: type, value: Any, where: str) -> Any:
    """Return a dataclass from a dictionary; unknown fields, which a later version may have, are ignored."""
    given = of_type(dict, value, where)
    hints = get_type_hints(wanted)
    names = [field.name for field in fields(wanted)]
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"{where} has no {missing[0]!r}: it is no inspection, or one of another version.")
    return wanted(**{name: rebuilt(hints[name], given[name], f"{where}.{name}") for name in names})


def rebuilt_array(value: Any, where: str) -> Array:
    """Return an array from its listed or packed form."""
    try:
        if not isinstance(value, dict):
            return np.array(value, dtype=np.float32)
        codes = np.frombuffer(base64.b64decode(value["uint16"], validate=True), dtype="<u2")
        low, high = float(value["low"]), float(value["high"])
        return (low + (high - low) * (codes / MOST_CODE)).astype(np.float32).reshape(value["shape"])
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        raise UsageError(f"{where} is no array of numbers: {error}.") from error


def of_type(kind: type, value: Any, where: str) -> Any:
    """Return the value if it is of this type."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{where} is {type(value).__name__}, not {kind.__name__}.")
    return value
