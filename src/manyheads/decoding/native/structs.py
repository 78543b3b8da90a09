"""Structs shared with the C code (`structs.h`, the same names), and the input of a decoding step.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head dimension, S source length.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from torch import Tensor

from manyheads.decoding.kv_cache import KVCache
from manyheads.model.layers import KeysValues

__all__ = [
    "INT64",
    "POINTER",
    "STRUCTS",
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


Fields = tuple[tuple[str, Any], ...]


def fields(kind: Any, names: str) -> Fields:
    """Return fields of one type for `_fields_`."""
    return tuple((name, kind) for name in names.split())


class Linear(ctypes.Structure):
    """A linear layer."""

    __slots__ = ()
    _fields_ = fields(POINTER, "weight scale bias") + fields(INT64, "inputs outputs")


class LayerNorm(ctypes.Structure):
    """A layer norm; no norm if `weight` is null."""

    __slots__ = ()
    _fields_ = fields(POINTER, "weight bias")


class Layer(ctypes.Structure):
    """The linear layers of an encoder or decoder layer."""

    __slots__ = ()
    _fields_ = fields(Linear, "self_qkv self_out cross_query cross_out expand contract")


class Model(ctypes.Structure):
    """An encoder or a decoder."""

    __slots__ = ()
    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norms", ctypes.POINTER(LayerNorm)),
        ("embedding", POINTER),
        ("embedding_norm", LayerNorm),
        ("output", Linear),
        *fields(INT64, "num_layers d_model num_heads d_ff vocabulary format activation pre_norm"),
        *fields(FLOAT32, "embedding_scale norm_epsilon"),
    )


class EncoderInput(ctypes.Structure):
    """Sentences that the encoder reads side by side."""

    __slots__ = ()
    _fields_ = (
        *fields(POINTER, "tokens sentence_ids positions starts position_signals rotary"),
        *fields(INT64, "sentences max_length"),
    )


class Step(ctypes.Structure):
    """A decoding step of some sentences."""

    __slots__ = ()
    _fields_ = (
        *fields(POINTER, "tokens position_signal rotary cache cache_bias visible"),
        ("memory", ctypes.POINTER(POINTER)),
        ("source_bias", POINTER),
        *fields(INT64, "sentences rows length capacity num_visible source_length source_capacity"),
    )


class BestTokens(ctypes.Structure):
    """A request for the best next tokens of each row."""

    __slots__ = ()
    _fields_ = fields(INT64, "count num_suppressed") + fields(POINTER, "suppressed values tokens")


class BeamOptions(ctypes.Structure):
    """Options of a beam search."""

    __slots__ = ()
    _fields_ = (*fields(INT64, "beam_size n_best eos signal_stride rotary_stride"), ("divisors", POINTER))


class Failure(ctypes.Structure):
    """The reason why a call was refused."""

    __slots__ = ()
    _fields_ = (("quantity", ctypes.c_char_p), *fields(INT64, "value low high"))


class Node(ctypes.Structure):
    """A token of an open prefix."""

    __slots__ = ()
    _fields_ = (*fields(INT32, "parent token"), ("log_prob", FLOAT32))


class Output(ctypes.Structure):
    """An output of a beam search."""

    __slots__ = ()
    _fields_ = (*fields(INT32, "length row ended"), ("log_prob", FLOAT32))


class Candidate(ctypes.Structure):
    """A continuation of a prefix."""

    __slots__ = ()
    _fields_ = (*fields(INT64, "row token"), ("log_prob", FLOAT32), ("total", ctypes.c_double))


class Beam(ctypes.Structure):
    """The beam search of a sentence."""

    __slots__ = ()
    _fields_ = (
        ("step", Step),
        *fields(INT64, "first_row length max_length num_outputs status cancelled"),
        *fields(POINTER, "latest log_probs best_scores visible next_visible nodes outputs candidates used"),
    )


STRUCTS: tuple[type[ctypes.Structure], ...] = (
    Linear, LayerNorm, Layer, Model, EncoderInput, Step, BestTokens, BeamOptions, Failure, Node, Output,
    Candidate, Beam
)  # fmt: skip


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
