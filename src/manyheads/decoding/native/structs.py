"""Structs shared with the C code (`structs.h`, the same names), and the input of a decoding step.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head dimension, S source length.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from torch import Tensor

from manyheads.decoding.kv_cache import KVCache
from manyheads.model.layers import KeysValues

__all__ = [
    "FLOAT32",
    "INT32",
    "INT64",
    "POINTER",
    "Beam",
    "BeamOptions",
    "BestTokens",
    "Candidate",
    "EncoderInput",
    "Failure",
    "Layer",
    "LayerNorm",
    "Linear",
    "Model",
    "Node",
    "Output",
    "PositionEncoding",
    "Step",
    "StepInput",
    "address",
    "addresses",
    "make_step",
]

POINTER, INT32, INT64, FLOAT32 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_float


class PositionEncoding(NamedTuple):
    """The encoding of one target position.

    Attributes:
        signal: (D,) added to the embedding; None with rotary positions.
        rotary_cos_sin: (E / 2, 2) cosines and sines that rotate queries and keys; None without rotary positions.
    """

    signal: Tensor | None
    rotary_cos_sin: Tensor | None


@dataclass(frozen=True)
class StepInput:
    """The input of a decoding step: rows that append a token, all at the same position.

    Attributes:
        tokens: (R,) to append, those of all W rows of each of the G sentences.
        position: target position of these tokens, from 0.
        cache: KV cache of the self-attention; the step appends to it.
        memory: keys and values of the source, (G, H, S, E) each, of each decoder layer.
        source_bias: (G, 1, 1, S) added to the scores of cross-attention; None without padding.
        live: (R',) indices of the rows whose next tokens are needed; None: all.
    """

    tokens: Tensor
    position: int
    cache: KVCache
    memory: Sequence[KeysValues]
    source_bias: Tensor | None
    live: Tensor | None

    @property
    def width(self) -> int:
        """The rows of a sentence, W."""
        return len(self.tokens) // self.memory[0][0].size(0)


class Linear(ctypes.Structure):
    """A linear layer."""

    __slots__ = ()
    _fields_ = (("weight", POINTER), ("scale", POINTER), ("bias", POINTER), ("inputs", INT64), ("outputs", INT64))


class LayerNorm(ctypes.Structure):
    """A layer norm; no norm if `weight` is null."""

    __slots__ = ()
    _fields_ = (("weight", POINTER), ("bias", POINTER))


class Layer(ctypes.Structure):
    """The linear layers of an encoder or decoder layer."""

    __slots__ = ()
    _fields_ = (
        ("self_qkv", Linear),
        ("self_out", Linear),
        ("cross_query", Linear),
        ("cross_out", Linear),
        ("expand", Linear),
        ("contract", Linear),
    )


class Model(ctypes.Structure):
    """An encoder or a decoder."""

    __slots__ = ()
    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norms", ctypes.POINTER(LayerNorm)),
        ("embedding", POINTER),
        ("embedding_norm", LayerNorm),
        ("output", Linear),
        ("num_layers", INT64),
        ("d_model", INT64),
        ("num_heads", INT64),
        ("d_ff", INT64),
        ("vocabulary", INT64),
        ("format", INT64),
        ("activation", INT64),
        ("pre_norm", INT64),
        ("embedding_scale", FLOAT32),
        ("norm_epsilon", FLOAT32),
    )


class EncoderInput(ctypes.Structure):
    """Sentences that the encoder reads side by side."""

    __slots__ = ()
    _fields_ = (
        ("tokens", POINTER),
        ("sentence_ids", POINTER),
        ("positions", POINTER),
        ("starts", POINTER),
        ("position_signals", POINTER),
        ("rotary", POINTER),
        ("sentences", INT64),
        ("max_length", INT64),
    )


class Step(ctypes.Structure):
    """A decoding step of some sentences."""

    __slots__ = ()
    _fields_ = (
        ("tokens", POINTER),
        ("position_signal", POINTER),
        ("rotary", POINTER),
        ("cache", POINTER),
        ("cache_bias", POINTER),
        ("visible", POINTER),
        ("memory", ctypes.POINTER(POINTER)),
        ("source_bias", POINTER),
        ("sentences", INT64),
        ("rows", INT64),
        ("length", INT64),
        ("capacity", INT64),
        ("num_visible", INT64),
        ("source_length", INT64),
        ("source_capacity", INT64),
    )


class BestTokens(ctypes.Structure):
    """A request for the best next tokens of each row."""

    __slots__ = ()
    _fields_ = (
        ("count", INT64),
        ("num_suppressed", INT64),
        ("suppressed", POINTER),
        ("values", POINTER),
        ("tokens", POINTER),
    )


class BeamOptions(ctypes.Structure):
    """Options of a beam search."""

    __slots__ = ()
    _fields_ = (
        ("beam_size", INT64),
        ("n_best", INT64),
        ("eos", INT64),
        ("signal_stride", INT64),
        ("rotary_stride", INT64),
        ("divisors", POINTER),
    )


class Failure(ctypes.Structure):
    """The reason why a call was refused."""

    __slots__ = ()
    _fields_ = (("quantity", ctypes.c_char_p), ("value", INT64), ("low", INT64), ("high", INT64))


class Node(ctypes.Structure):
    """A token of an open prefix."""

    __slots__ = ()
    _fields_ = (("parent", INT32), ("token", INT32), ("log_prob", FLOAT32))


class Output(ctypes.Structure):
    """An output of a beam search."""

    __slots__ = ()
    _fields_ = (("length", INT32), ("row", INT32), ("ended", INT32), ("log_prob", FLOAT32))


class Candidate(ctypes.Structure):
    """A continuation of a prefix."""

    __slots__ = ()
    _fields_ = (("row", INT64), ("token", INT64), ("log_prob", FLOAT32), ("total", ctypes.c_double))


class Beam(ctypes.Structure):
    """The beam search of a sentence."""

    __slots__ = ()
    _fields_ = (
        ("step", Step),
        ("first_row", INT64),
        ("length", INT64),
        ("max_length", INT64),
        ("num_outputs", INT64),
        ("status", INT64),
        ("cancelled", INT64),
        ("latest", POINTER),
        ("log_probs", POINTER),
        ("best_scores", POINTER),
        ("visible", POINTER),
        ("next_visible", POINTER),
        ("nodes", POINTER),
        ("outputs", POINTER),
        ("candidates", POINTER),
        ("used", POINTER),
    )


def make_step(step: StepInput, tokens: Tensor, encoding: PositionEncoding) -> Step:
    """Return the struct of a step; the caller keeps the tensors.

    Args:
        step: the step, with room for its tokens made in the cache.
        tokens: (R,) its tokens, contiguous.
        encoding: the encoding of its position.
    """
    sentences, _, source_length, _ = step.memory[0][0].shape
    return Step(
        tokens=address(tokens),
        position_signal=address(encoding.signal),
        rotary=address(encoding.rotary_cos_sin),
        cache=address(step.cache.store),
        cache_bias=address(step.cache.bias),
        memory=addresses([*chain(*step.memory)]),
        source_bias=address(step.source_bias),
        sentences=sentences,
        rows=step.width,
        length=step.cache.length,
        capacity=step.cache.store.size(4),
        source_length=source_length,
        source_capacity=source_length,
    )


def addresses(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of contiguous tensors; the caller keeps them."""
    return (POINTER * len(tensors))(*map(address, tensors))


def address(tensor: Tensor | None) -> int | None:
    """Return the address of a contiguous tensor; the caller keeps it."""
    if tensor is None:
        return None
    assert tensor.is_contiguous()
    return tensor.data_ptr()
