"""Structs and enumerations shared with the C code; the fields are those of the headers in this folder."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

POINTER, INT64 = ctypes.c_void_p, ctypes.c_int64
NUMBERS = {"float": ctypes.c_float, "double": ctypes.c_double, "int32_t": ctypes.c_int32, "int64_t": INT64}

Format = IntEnum("Format", "FLOAT32 BFLOAT16 INT8", start=0)
Activation = IntEnum("Activation", "NO_ACTIVATION RELU GELU GELU_TANH SWISH SWIGLU", start=0)
BeamStatus = IntEnum("BeamStatus", "BEAM_RUNNING BEAM_ENDED BEAM_CACHE_FULL BEAM_NAN BEAM_INVALID", start=0)
ENUMERATIONS: tuple[type[IntEnum], ...] = (Format, Activation, BeamStatus)

_HEADERS = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in ("linear.h", "structs.h"))
_STRUCTS = re.findall(r"typedef struct \{([^}]*)\} (\w+);", re.sub(r"/\*.*?\*/", "", _HEADERS, flags=re.DOTALL))
_DECLARATIONS = {name: declarations for declarations, name in _STRUCTS}


def ctype(text: str, structs: Iterable[type[ctypes.Structure]]) -> Any:
    """Return the type of `ctypes` for a type of C; a pointer is an address unless it points to one of `structs`."""
    words = text.replace("*", " * ").replace("const", "").split()
    base, stars = words[0], words.count("*")
    known = {struct.__name__: struct for struct in structs}
    if stars == 2:
        return ctypes.POINTER(POINTER)
    if stars and base in known:
        return ctypes.POINTER(known[base])
    if stars:
        return ctypes.c_char_p if base == "char" else POINTER
    return {"void": None, "int": ctypes.c_int, **NUMBERS, **known}[base]


def _fields(struct: str, *structs: type[ctypes.Structure]) -> tuple[tuple[str, Any], ...]:
    """Return the names and the types of the fields of a C struct, in whose declarations some structs occur."""
    fields = []
    for declaration in _DECLARATIONS[struct].split(";")[:-1]:
        base, names = declaration.replace("const ", "").split(maxsplit=1)  # as in `const float *weight, *bias`
        for name in names.split(","):
            fields.append((name.strip(" *"), ctype(base + "*" * name.count("*"), structs)))
    return tuple(fields)


class Linear(ctypes.Structure):
    """A linear layer."""

    __slots__, _fields_ = (), _fields("Linear")


class LayerNorm(ctypes.Structure):
    """A layer norm; no norm if `weight` is null."""

    __slots__, _fields_ = (), _fields("LayerNorm")


class Layer(ctypes.Structure):
    """The linear layers of an encoder or decoder layer."""

    __slots__, _fields_ = (), _fields("Layer", Linear)


class Heads(ctypes.Structure):
    """The attention weights and vectors that a call reports, and the factors of heads; null if not requested."""

    __slots__, _fields_ = (), _fields("Heads")


class Model(ctypes.Structure):
    """An encoder or a decoder."""

    __slots__, _fields_ = (), _fields("Model", Linear, LayerNorm, Layer)


class EncoderInput(ctypes.Structure):
    """A batch of concatenated sentences for the encoder."""

    __slots__, _fields_ = (), _fields("EncoderInput", Heads)


class Step(ctypes.Structure):
    """A decoding step of some sentences."""

    __slots__, _fields_ = (), _fields("Step", Heads)


class BestTokens(ctypes.Structure):
    """A request for the best next tokens of each row."""

    __slots__, _fields_ = (), _fields("BestTokens")


class BeamOptions(ctypes.Structure):
    """Options of a beam search, or of sampling with a beam of 1."""

    __slots__, _fields_ = (), _fields("BeamOptions")


class Failure(ctypes.Structure):
    """The reason why a call was refused."""

    __slots__, _fields_ = (), _fields("Failure")


class Output(ctypes.Structure):
    """An output of a beam search."""

    __slots__, _fields_ = (), _fields("Output")


class Beam(ctypes.Structure):
    """The beam search of a sentence."""

    __slots__, _fields_ = (), _fields("Beam", Step, Output)


STRUCTS: tuple[type[ctypes.Structure], ...] = (
    Linear, LayerNorm, Layer, Heads, Model, EncoderInput, Step, BestTokens, BeamOptions, Failure, Output, Beam
)  # fmt: skip
