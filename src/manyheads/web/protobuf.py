"""Read the fields of a message in the binary format of Protocol Buffers, such as a SentencePiece model."""

from __future__ import annotations

import struct
from typing import Any

_FLOATS = {1: struct.Struct("<d"), 5: struct.Struct("<f")}  # by type of field


def read_fields(data: bytes) -> dict[int, list[Any]]:
    """Return the values of each field of a message by its number: integers, floats, or bytes.

    The message must be valid, such as one that a library has read.
    """
    fields: dict[int, list[Any]] = {}
    value: int | float | bytes
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        match key & 7:
            case 0:  # an integer
                value, position = _read_varint(data, position)
            case 1 | 5 as kind:
                (value,) = _FLOATS[kind].unpack_from(data, position)
                position += _FLOATS[kind].size
            case 2:  # bytes, a string, or a message
                length, position = _read_varint(data, position)
                value, position = data[position : position + length], position + length
            case kind:
                raise ValueError(f"field {key >> 3} has the type {kind}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the integer at a position, in groups of 7 bits, the lowest first, and the position after it."""
    value = shift = 0
    while data[position] & 0x80:
        value |= (data[position] & 0x7F) << shift
        position, shift = position + 1, shift + 7
    return value | data[position] << shift, position + 1
