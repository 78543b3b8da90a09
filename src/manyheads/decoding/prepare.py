"""Packing of a model's weights for decoding, and the measurement of both decoding paths.

Shapes: R rows of a step, S source length.
"""

from __future__ import annotations

import ctypes
import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.model import NativeModel
from manyheads.decoding.native.speed import NativeSpeed, used_library
from manyheads.decoding.native.weights import Precision
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder

_ROW_COUNTS = (1, 5, 320)  # rows of a measured step: one line, its beam of 5, and 64 lines with a beam of 5
_SOURCE_LENGTH, _VOCAB_SIZE = 16, 8_000
_STEPS_A_ROUND = 4  # consecutive steps; in the first, threads of the other path may still be spinning
_MAX_MEASUREMENT_SECONDS = 2.0  # of a measurement, after at least two rounds


def pack(model: EncoderDecoder, precision: Precision = "fp32") -> InferenceModel:
    """Pack the weights of a model for fast decoding on its device.

    Args:
        model: the model, on the device that decodes.
        precision: "fp32" computes what the model computes. On a CPU "bf16" rounds the matrices to 8 significant
            bits, "int8" to 8 bits with a scale for each output; activations stay float32 on every processor. On
            another device "bf16" computes in bfloat16.

    Raises:
        UsageError: "int8" on another device than a CPU.
    """
    weight = model.output.weight
    if weight.device.type == "cpu":
        code = used_library() if weight.dtype == torch.float32 else None
        native = None if code is None else _native_model(model, precision, code)
        return InferenceModel(model, rounding=precision, native=native)
    if precision == "int8":
        raise UsageError(f'precision "int8" is for a CPU, not for {weight.device.type}. Use "bf16".')
    return InferenceModel(model, torch.bfloat16 if precision == "bf16" else None)


def _native_model(model: EncoderDecoder, precision: Precision, code: ctypes.CDLL) -> NativeModel:
    """Pack the weights of a model, float32 on a CPU, for the C code."""
    # Not `Tensor.numpy`, after which the storage cannot be resized: FSDP frees the gathered weights by resizing.
    named = model.named_parameters(remove_duplicate=False)
    tensors: dict[str, Any] = {name: np.from_dlpack(weight.detach()) for name, weight in named}
    sizes = model.source_embedding.tokens.num_embeddings, model.output.out_features
    return NativeModel(tensors, model.config, sizes, precision, code)


def measure(code: ctypes.CDLL) -> NativeSpeed:
    """Time decoding steps of a small random model, alternately in native code and in torch."""
    config = ModelConfig(d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=1, num_decoder_layers=3)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        model = EncoderDecoder(config, _VOCAB_SIZE, _VOCAB_SIZE).eval()
        paths = {
            "native": InferenceModel(model, native=_native_model(model, "fp32", code)),
            "torch": InferenceModel(model),
        }
        source = torch.randint(5, _VOCAB_SIZE, (max(_ROW_COUNTS), _SOURCE_LENGTH))
        shortest = {path: dict.fromkeys(_ROW_COUNTS, math.inf) for path in paths}
        start, rounds = time.perf_counter(), 0
        while rounds < 2 or time.perf_counter() - start < _MAX_MEASUREMENT_SECONDS:
            rounds += 1
            for rows in _ROW_COUNTS:
                for path, packed in paths.items():
                    seconds = _step_seconds(packed, source[:rows])
                    shortest[path][rows] = min(shortest[path][rows], seconds)
    return NativeSpeed(torch.get_num_threads(), shortest["native"], shortest["torch"])


def _step_seconds(model: InferenceModel, source: Tensor) -> float:
    """Return the shortest time of a few decoding steps in seconds; source: (R, S)."""
    stepper, tokens = EncoderDecoderStepper(model, source), source[:, 0].contiguous()
    shortest = math.inf
    for _ in range(_STEPS_A_ROUND):
        start = time.perf_counter()
        stepper.step(tokens)
        shortest = min(shortest, time.perf_counter() - start)
    return shortest
