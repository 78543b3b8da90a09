"""What a step is told, and what compiled code is told (`native/decoder.c`): the structures are the same ones.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head width, S source length.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from torch import Tensor

from manyheads.model.cache import SharedPast
from manyheads.model.layers import KeysValues

__all__ = [
    "POINTER",
    "WHOLE",
    "Beam",
    "Best",
    "Layer",
    "Linear",
    "Model",
    "Norm",
    "Part",
    "Place",
    "Search",
    "Step",
    "addresses",
    "pointer",
    "step_of",
]

POINTER, WHOLE, REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
# At a place of the target, what is added to embeddings (D,), and how queries and keys turn (E / 2, 2), if they do.
Place = tuple[Tensor | None, Tensor | None]


@dataclass(frozen=True)
class Part:
    """Rows that take a step together, all at the same place of their targets.

    Attributes:
        tokens: to be appended, of all W rows of each of the G sentences (R,).
        place: of the target, from 0.
        past: of the self-attention; it grows.
        memory: of each layer, keys and values of the source (G, H, S, E).
        source_bias: what is added to the scores of cross-attention (G, 1, 1, S), if anything.
        live: rows whose next tokens are asked for (R',); None is all.
    """

    tokens: Tensor
    place: int
    past: SharedPast
    memory: Sequence[KeysValues]
    source_bias: Tensor | None
    live: Tensor | None

    @property
    def width(self) -> int:
        """Rows a sentence, W."""
        return len(self.tokens) // self.memory[0][0].size(0)


class Linear(ctypes.Structure):
    """A linear layer."""

    _fields_ = (("weight", POINTER), ("scale", POINTER), ("bias", POINTER), ("inputs", WHOLE), ("outputs", WHOLE))


class Norm(ctypes.Structure):
    """A layer norm; without a weight there is none."""

    _fields_ = (("weight", POINTER), ("bias", POINTER))


class Layer(ctypes.Structure):
    """The products of a decoder layer."""

    _fields_ = tuple(
        (name, Linear) for name in ("self_in", "self_out", "cross_query", "cross_out", "expand", "contract")
    )


class Model(ctypes.Structure):
    """All that a step needs to know of a model."""

    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norms", ctypes.POINTER(Norm)),
        ("table", POINTER),
        ("embedding_norm", Norm),
        ("output", Linear),
        *((name, WHOLE) for name in ("count", "width", "heads", "inner", "format", "activation", "pre_norm")),
        ("scale", REAL),
        ("epsilon", REAL),
    )


class Step(ctypes.Structure):
    """What differs from step to step."""

    _fields_ = (
        *((name, POINTER) for name in ("tokens", "signal", "turns", "past", "past_bias", "seen")),
        ("memory", ctypes.POINTER(POINTER)),
        ("source_bias", POINTER),
        *((name, WHOLE) for name in ("sentences", "rows", "held", "room", "visible", "source", "source_room")),
    )


class Best(ctypes.Structure):
    """The likeliest next tokens, which are asked for."""

    _fields_ = (
        ("count", WHOLE),
        ("silent", WHOLE),
        ("never", POINTER),
        ("values", POINTER),
        ("tokens", POINTER),
    )


class Search(ctypes.Structure):
    """What the beams of a search have in common."""

    _fields_ = (*((name, WHOLE) for name in ("size", "wanted", "end", "signal", "turns")), ("divisors", POINTER))


class Beam(ctypes.Structure):
    """The beam search of a sentence."""

    _fields_ = (
        ("step", Step),
        *((name, WHOLE) for name in ("row", "length", "limit", "found", "state", "abandoned")),
        *((name, POINTER) for name in ("latest", "totals", "scores", "seen", "spare", "nodes", "outputs")),
    )


def step_of(part: Part, tokens: Tensor, place: Place) -> Step:
    """A part whose tokens (R,) are contiguous; the caller keeps them."""
    sentences, _, length, _ = part.memory[0][0].shape
    past, (signal, turns) = part.past, place
    return Step(
        pointer(tokens),
        pointer(signal),
        pointer(turns),
        pointer(past.store),
        pointer(past.bias),
        None,
        addresses([*chain(*part.memory)]),
        pointer(part.source_bias),
        sentences,
        part.width,
        past.length,
        past.store.size(4),
        0,
        length,
        length,
    )


def addresses(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    """Where contiguous tensors lie; the caller keeps them."""
    return (POINTER * len(tensors))(*map(pointer, tensors))


def pointer(tensor: Tensor | None) -> int | None:
    """Where a contiguous tensor lies; the caller keeps it."""
    if tensor is None:
        return None
    assert tensor.is_contiguous()
    return tensor.data_ptr()
