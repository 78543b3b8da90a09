"""The interface of the library of `decoder.c`: its functions with the types of their arguments, and shared structs.

The library is checked when it is loaded: code that reads a struct with another layout would read foreign memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

from manyheads.inference.native.structs import ENUMERATIONS, INT64, NUMBERS, STRUCTS, ctype


class _Field(ctypes.Structure):
    """The offset, size and type of a struct or field, or the value of a constant, as in `layout.h`."""

    __slots__ = ()
    _fields_ = (("name", ctypes.c_char_p), ("offset", INT64), ("size", INT64), ("type", ctypes.c_char_p))


class _Function(ctypes.Structure):
    """The types of a function, as in `layout.h`."""

    __slots__ = ()
    _fields_ = (("name", ctypes.c_char_p), ("types", ctypes.c_char_p))


_TYPES = {number: name.removesuffix("_t") for name, number in NUMBERS.items()}
_Entry = tuple[int, int, str]  # offset, size, type


class InterfaceError(Exception):
    """The library and the headers beside this file do not agree on a function, a struct or an enumeration."""


def check_interface(library: ctypes.CDLL) -> None:
    """Declare the types of all functions, and compare the layout of all shared structs and all enumerations.

    Raises:
        InterfaceError: the library lacks a function, or a struct has another layout in C than in Python.
    """
    try:
        for entry in _table(library.function_types, _Function):
            result, _, arguments = entry.types.decode().removesuffix(")").partition("(")
            function = getattr(library, entry.name.decode())
            function.restype = ctype(result, STRUCTS)
            function.argtypes = (
                [] if arguments == "void" else [ctype(text, STRUCTS) for text in arguments.split(",")]
            )
        in_c = _layout_in_c(library)
    except AttributeError as error:
        raise InterfaceError(f"the C library has no function {str(error).rpartition(' ')[2]}") from None
    for name, entry in _layout_in_python().items():
        if in_c.get(name) != entry:
            raise InterfaceError(f"{name} is {_place(in_c.get(name))} in C, {_place(entry)} in Python")


def _table(function: Any, kind: type[Any]) -> list[Any]:
    function.restype, function.argtypes = ctypes.POINTER(kind), (ctypes.POINTER(INT64),)
    count = INT64()
    entries = function(count)
    return [entries[i] for i in range(count.value)]


def _layout_in_c(library: ctypes.CDLL) -> dict[str, _Entry]:
    """Return the offset, size and type of each struct and field by its name, and the value of each constant."""
    return {
        field.name.decode(): (field.offset, field.size, field.type.decode())
        for field in _table(library.struct_layout, _Field)
    }


def _layout_in_python() -> dict[str, _Entry]:
    """Return the same as `_layout_in_c` for the classes in `structs.py`."""
    layout: dict[str, _Entry] = {}
    for struct in STRUCTS:
        layout[struct.__name__] = (0, ctypes.sizeof(struct), struct.__name__)
        for name, kind, *_ in struct._fields_:
            field = getattr(struct, name)
            type_name = kind.__name__ if issubclass(kind, ctypes.Structure) else _TYPES.get(kind, "pointer")
            layout[f"{struct.__name__}.{name}"] = (field.offset, field.size, type_name)
    for enumeration in ENUMERATIONS:
        layout |= {constant.name: (constant.value, 0, enumeration.__name__) for constant in enumeration}
    return layout


def _place(entry: _Entry | None) -> str:
    if entry is None:
        return "missing"
    offset, size, type_name = entry
    return f"{size} bytes ({type_name}) at byte {offset}" if size else f"{offset} ({type_name})"
