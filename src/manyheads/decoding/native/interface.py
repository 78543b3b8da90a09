"""The interface of the library of `decoder.c`: its functions with the types of their arguments, and shared structs.

The library is checked when it is loaded: code that reads a struct with another layout would read foreign memory.
"""

from __future__ import annotations

import ctypes

from manyheads.decoding.native.structs import (
    INT64,
    POINTER,
    STRUCTS,
    Beam,
    BeamOptions,
    BestTokens,
    EncoderInput,
    Failure,
    Linear,
    Model,
)

__all__ = ["InterfaceError", "check_interface"]


class Field(ctypes.Structure):
    """The offset, size and type of a struct or field, as in `layout.h`."""

    __slots__ = ()
    _fields_ = (("name", ctypes.c_char_p), ("offset", INT64), ("size", INT64), ("type", ctypes.c_char_p))


THREADS, POINTER_TO = ctypes.c_int, ctypes.POINTER
FUNCTIONS = {  # name: type of the result, types of the arguments in the order of decoder.c
    "struct_layout": (POINTER_TO(Field), (POINTER_TO(INT64),)),
    "panel_width": (INT64, ()),
    "workspace_size": (INT64, (POINTER_TO(Model), INT64, INT64, INT64)),
    "encode": (INT64, (POINTER_TO(Model), POINTER_TO(Linear), INT64, POINTER_TO(EncoderInput), POINTER_TO(POINTER),
                       POINTER, THREADS, POINTER_TO(Failure))),
    "linear_layer": (None, (POINTER_TO(Linear), INT64, POINTER, INT64, POINTER)),
    "decoder_steps": (INT64, (POINTER_TO(Model), POINTER_TO(POINTER), INT64, INT64, POINTER, POINTER,
                              POINTER_TO(BestTokens), THREADS, POINTER_TO(Failure))),
    "beam_steps": (INT64, (POINTER_TO(Model), POINTER_TO(BeamOptions), POINTER_TO(POINTER), INT64, INT64, POINTER,
                           POINTER, POINTER_TO(BestTokens), THREADS, POINTER_TO(Failure))),
    "extend_beam": (INT64, (POINTER_TO(Model), POINTER_TO(BeamOptions), POINTER_TO(Beam), POINTER_TO(BestTokens),
                            POINTER_TO(Failure))),
}  # fmt: skip


class InterfaceError(Exception):
    """The library and these Python files do not agree on a function or a struct."""


def check_interface(library: ctypes.CDLL) -> None:
    """Declare the types of all functions, and compare the layout of all shared structs.

    Raises:
        InterfaceError: the library lacks a function, or a struct has another layout in C than in Python.
    """
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise InterfaceError(f"the C library has no function {name}") from None
        function.restype, function.argtypes = result, arguments
    in_c, in_python = layout_in_c(library), layout_in_python()
    for name in [*in_python, *in_c]:
        if in_c.get(name) != in_python.get(name):
            raise InterfaceError(f"{name} is {place(in_c.get(name))} in C, {place(in_python.get(name))} in Python")


def layout_in_c(library: ctypes.CDLL) -> dict[str, tuple[int, int]]:
    """Return the offset and size, in bytes, of each struct and field by its name."""
    count = INT64()
    fields = library.struct_layout(count)
    return {fields[i].name.decode(): (fields[i].offset, fields[i].size) for i in range(count.value)}


def layout_in_python() -> dict[str, tuple[int, int]]:
    """Return the same as `layout_in_c` for the classes in `structs.py`."""
    layout = {}
    for struct in STRUCTS:
        layout[struct.__name__] = (0, ctypes.sizeof(struct))
        for name, *_ in struct._fields_:
            field = getattr(struct, name)
            layout[f"{struct.__name__}.{name}"] = (field.offset, field.size)
    return layout


def place(field: tuple[int, int] | None) -> str:
    """Describe the size and the offset of a field."""
    return "missing" if field is None else f"{field[1]} bytes at byte {field[0]}"
