"""Structs and enumerations shared with the C code (`structs.h`, `linear.h`, `vectors.h`; the same names)."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

POINTER, _INT32, INT64, _FLOAT32 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_float


Format = IntEnum("Format", "FLOAT32 BFLOAT16 INT8", start=0)
Activation = IntEnum("Activation", "NO_ACTIVATION RELU GELU GELU_TANH SWISH SWIGLU", start=0)
BeamStatus = IntEnum("BeamStatus", "BEAM_RUNNING BEAM_ENDED BEAM_CACHE_FULL BEAM_NAN BEAM_INVALID", start=0)
ENUMERATIONS: tuple[type[IntEnum], ...] = (Format, Activation, BeamStatus)

_Fields = tuple[tuple[str, Any], ...]


def _fields(kind: Any, names: str) -> _Fields:
    """Return fields of one type for `_fields_`."""
    return tuple((name, kind) for name in names.split())


class Linear(ctypes.Structure):
    """A linear layer."""

    __slots__ = ()
    _fields_ = _fields(POINTER, "weight scale bias") + _fields(INT64, "inputs outputs")


class LayerNorm(ctypes.Structure):
    """A layer norm; no norm if `weight` is null."""

    __slots__ = ()
    _fields_ = _fields(POINTER, "weight bias")


class Layer(ctypes.Structure):
    """The linear layers of an encoder or decoder layer."""

    __slots__ = ()
    _fields_ = _fields(Linear, "self_qkv self_out cross_query cross_out expand contract")


class Heads(ctypes.Structure):
    """The attention weights and vectors that a call reports, and the factors of heads; null if not requested."""

    __slots__ = ()
    _fields_ = _fields(POINTER, "weights factors vectors")


class Model(ctypes.Structure):
    """An encoder or a decoder."""

    __slots__ = ()
    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norms", ctypes.POINTER(LayerNorm)),
        ("embedding", POINTER),
        ("embedding_norm", LayerNorm),
        ("output", Linear),
        *_fields(INT64, "num_layers d_model num_heads d_ff vocabulary format activation pre_norm"),
        *_fields(_FLOAT32, "embedding_scale norm_epsilon"),
    )


class EncoderInput(ctypes.Structure):
    """A batch of concatenated sentences for the encoder."""

    __slots__ = ()
    _fields_ = (
        *_fields(POINTER, "tokens sentence_ids positions starts position_signals rotary"),
        *_fields(INT64, "sentences max_length"),
        ("heads", Heads),
        ("output", POINTER),
    )


class Step(ctypes.Structure):
    """A decoding step of some sentences."""

    __slots__ = ()
    _fields_ = (
        *_fields(POINTER, "tokens position_signal rotary cache cache_bias visible"),
        ("memory", ctypes.POINTER(POINTER)),
        ("source_bias", POINTER),
        *_fields(INT64, "sentences rows length capacity num_visible source_length source_capacity"),
        *_fields(INT64, "shared_cache num_later"),
        *_fields(Heads, "self_heads cross_heads"),
    )


class BestTokens(ctypes.Structure):
    """A request for the best next tokens of each row."""

    __slots__ = ()
    _fields_ = _fields(INT64, "count num_suppressed") + _fields(POINTER, "suppressed values tokens")


class BeamOptions(ctypes.Structure):
    """Options of a beam search, or of sampling with a beam of 1."""

    __slots__ = ()
    _fields_ = (
        *_fields(INT64, "beam_size n_best eos signal_stride rotary_stride"),
        ("divisors", POINTER),
        *_fields(INT64, "no_repeat_ngram top_k"),
        *_fields(ctypes.c_double, "temperature top_p"),
    )


class Failure(ctypes.Structure):
    """The reason why a call was refused."""

    __slots__ = ()
    _fields_ = (("quantity", ctypes.c_char_p), *_fields(INT64, "value low high"))


class Node(ctypes.Structure):
    """A token of an open prefix."""

    __slots__ = ()
    _fields_ = (*_fields(_INT32, "parent token"), ("log_prob", _FLOAT32))


class Output(ctypes.Structure):
    """An output of a beam search."""

    __slots__ = ()
    _fields_ = (*_fields(_INT32, "length row ended"), ("log_prob", _FLOAT32))


class Candidate(ctypes.Structure):
    """A continuation of a prefix."""

    __slots__ = ()
    _fields_ = (*_fields(INT64, "row token"), ("log_prob", _FLOAT32), ("total", ctypes.c_double))


class Beam(ctypes.Structure):
    """The beam search of a sentence."""

    __slots__ = ()
    _fields_ = (
        ("step", Step),
        *_fields(INT64, "first_row length max_length num_outputs status cancelled"),
        *_fields(POINTER, "latest log_probs best_scores visible next_visible nodes outputs candidates used"),
        *_fields(INT64, "min_length prefix_length num_forbidden"),
        *_fields(POINTER, "prefix forbidden forbidden_ends history uniform heap"),
    )


STRUCTS: tuple[type[ctypes.Structure], ...] = (
    Linear, LayerNorm, Layer, Heads, Model, EncoderInput, Step, BestTokens, BeamOptions, Failure, Node, Output,
    Candidate, Beam
)  # fmt: skip
